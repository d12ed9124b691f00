//! Standard input and output as a transport that answers every request, even if the client has closed its end.
//!
//! A script that pipes requests in closes the input at once. rmcp 3.8 then drops every request that runs for another 5
//! seconds, and a last line without a line break. This transport reports the end of input only when every request is
//! answered: running requests may finish, and those that take too long are cancelled and answered with an error.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ErrorData, JsonRpcMessage, RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Chain};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How long requests may run after the end of input. Clients that wait for the server to exit kill it sooner.
const FINISHES_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Stdio<R: AsyncRead, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, Chain<R, &'static [u8]>, W>,
    pending: Arc<Pending>,
    finishes_within: Duration,
    /// When running requests are cancelled; set at the end of input.
    deadline: Option<Instant>,
    /// Messages for the server after the end of input, as if the client had sent them.
    closing: VecDeque<RxJsonRpcMessage<RoleServer>>,
    /// Answers to cancelled requests that are being written.
    answers: JoinSet<Result<(), io::Error>>,
}

/// Requests without an answer, in both directions.
#[derive(Default)]
struct Pending {
    requests: Mutex<Requests>,
    changed: Notify,
}

#[derive(Default)]
struct Requests {
    from_client: HashSet<RequestId>,
    to_client: HashSet<RequestId>,
    /// Requests from the client that were answered with an error because they took too long.
    cancelled: HashSet<RequestId>,
}

impl Pending {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every request from the client is answered.
    async fn all_answered(&self) {
        loop {
            let changed = self.changed.notified();
            if self.requests().from_client.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W) -> Self {
        Stdio {
            inner: AsyncRwTransport::new_server(input.chain(b"\n"), output),
            pending: Arc::default(),
            finishes_within: FINISHES_WITHIN,
            deadline: None,
            closing: VecDeque::new(),
            answers: JoinSet::new(),
        }
    }

    fn record(&self, message: &RxJsonRpcMessage<RoleServer>) {
        let mut requests = self.pending.requests();
        match message {
            JsonRpcMessage::Request(request) => {
                requests.from_client.insert(request.id.clone());
            }
            JsonRpcMessage::Response(response) => {
                requests.to_client.remove(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                error.id.as_ref().map(|id| requests.to_client.remove(id));
            }
            // A request that the client cancels gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    requests.from_client.remove(id);
                }
            }
        }
    }

    /// Starts the time limit for unfinished requests. The server's own requests fail immediately, because no client can
    /// answer them.
    fn end_input(&mut self) -> Instant {
        let unanswered: Vec<RequestId> = self.pending.requests().to_client.drain().collect();
        self.closing.extend(unanswered.into_iter().map(|id| JsonRpcMessage::error(closed(), Some(id))));
        *self.deadline.insert(Instant::now() + self.finishes_within)
    }

    /// Cancels the requests that are still running, and answers them.
    fn cancel_the_rest(&mut self) {
        let late: Vec<RequestId> = {
            let mut requests = self.pending.requests();
            let late = requests.from_client.drain().collect::<Vec<_>>();
            requests.cancelled.extend(late.iter().cloned());
            late
        };
        for id in late {
            self.answers.spawn(self.inner.send(JsonRpcMessage::error(closed(), Some(id.clone()))));
            let reason = Some("end of input".to_owned());
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
            self.closing.push_back(JsonRpcMessage::notification(cancelled.into()));
        }
    }
}

fn closed() -> ErrorData {
    ErrorData::internal_error("cancelled: the client closed its connection before the request finished", None)
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(request) => {
                self.pending.requests().to_client.insert(request.id.clone());
                None
            }
            JsonRpcMessage::Notification(_) => None,
        };
        let is_late = answered.as_ref().is_some_and(|id| self.pending.requests().cancelled.contains(id));
        let is_in_vain = matches!(message, JsonRpcMessage::Request(_)) && self.deadline.is_some();
        let sending = (!is_late && !is_in_vain).then(|| self.inner.send(message));
        let pending = Arc::clone(&self.pending);
        async move {
            let sent = match sending {
                Some(sending) => sending.await,
                None if is_in_vain => Err(io::ErrorKind::NotConnected.into()),
                None => Ok(()),
            };
            if let Some(id) = answered {
                pending.requests().from_client.remove(&id);
                pending.changed.notify_waiters();
            }
            sent
        }
    }

    // The future may be dropped at any await, so everything that must survive is kept in `self`.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let deadline = match self.deadline {
            Some(deadline) => deadline,
            None => match self.inner.receive().await {
                Some(message) => {
                    self.record(&message);
                    return Some(message);
                }
                None => self.end_input(),
            },
        };
        if let Some(message) = self.closing.pop_front() {
            return Some(message);
        }
        let pending = Arc::clone(&self.pending);
        tokio::select! {
            () = pending.all_answered() => {}
            () = sleep_until(deadline) => self.cancel_the_rest(),
        }
        while self.answers.join_next().await.is_some() {}
        self.closing.pop_front()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;

    const WITHIN: Duration = Duration::from_millis(200);

    /// What a client reads that sends one request without a line break and closes its end.
    fn answers_after_end_of_input(
        handle: impl AsyncFnOnce(&mut Stdio<tokio::io::DuplexStream, tokio::io::DuplexStream>),
    ) -> Vec<Value> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (mut client, input) = tokio::io::duplex(1 << 16);
            let (output, answers) = tokio::io::duplex(1 << 16);
            let mut stdio = Stdio { finishes_within: WITHIN, ..Stdio::new(input, output) };
            client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}").await.expect("a request");
            drop(client);
            assert!(matches!(stdio.receive().await, Some(JsonRpcMessage::Request(_))));
            handle(&mut stdio).await;
            assert!(stdio.receive().await.is_none());
            stdio.close().await.expect("an end");
            let mut lines = BufReader::new(answers).lines();
            let mut received = Vec::new();
            while let Some(line) = lines.next_line().await.expect("a line") {
                received.push(serde_json::from_str(&line).expect("JSON"));
            }
            received
        })
    }

    fn answer() -> TxJsonRpcMessage<RoleServer> {
        JsonRpcMessage::error(ErrorData::internal_error("done", None), Some(RequestId::Number(7)))
    }

    #[test]
    fn a_request_still_running_at_end_of_input_is_answered() {
        let received = answers_after_end_of_input(async |stdio| {
            let work = stdio.send(answer());
            tokio::spawn(async {
                tokio::time::sleep(WITHIN / 4).await;
                work.await.expect("an answer");
            });
        });
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!((&received[0]["id"], &received[0]["error"]["message"]), (&json!(7), &json!("done")));
    }

    #[test]
    fn an_endless_request_is_cancelled_and_answered_once_after_end_of_input() {
        let received = answers_after_end_of_input(async |stdio| {
            let Some(JsonRpcMessage::Notification(cancelled)) = stdio.receive().await else { panic!("not cancelled") };
            let ClientNotification::CancelledNotification(cancelled) = cancelled.notification else { panic!() };
            assert_eq!(cancelled.params.request_id, Some(RequestId::Number(7)));
            stdio.send(answer()).await.expect("nothing is sent");
        });
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!(received[0]["id"], 7);
        assert!(
            received[0]["error"]["message"].as_str().is_some_and(|told| told.contains("closed its connection")),
            "{received:?}"
        );
    }
}
