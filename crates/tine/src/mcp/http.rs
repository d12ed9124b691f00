//! The same server on a port of this machine, for those who know the token.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diagnostics::OrLog;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::server::Server;
use crate::environment;

/// The longest request that is read.
const LONGEST: u64 = 16 << 20;

/// What is shorter can be guessed.
const SHORTEST: usize = 16;

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<Server, LocalSessionManager>;

pub(super) async fn serve(server: Server, address: SocketAddr) -> Result<(), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let chosen = environment::mcp_token();
    if chosen.as_ref().is_some_and(|token| token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(format!("TINE_MCP_TOKEN must have at least {SHORTEST} printable ASCII characters"));
    }
    let token: Arc<str> = chosen.clone().unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()).into();
    // Pages in a browser have no business here, wherever they come from.
    let config = StreamableHttpServerConfig::default().enforce_origin_validation();
    let service: Service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
    let token_hint = match chosen {
        Some(_) => "clients must send TINE_MCP_TOKEN: `Authorization: Bearer TOKEN`".to_owned(),
        None => format!("clients must send this header: Authorization: Bearer {token}"),
    };
    writeln!(io::stderr().lock(), "listening on http://{address}/mcp\n{token_hint}").or_log("write to standard error");
    let answer = move |request| answer(service.clone(), Arc::clone(&token), request);
    tokio::select! {
        () = listen(listener, Limits::default(), answer) => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Keeps clients that are slow, silent or too many from blocking the others.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Open connections; further ones wait until one of them closes.
    connections: usize,
    /// Time for the head of a request, and the longest silence between two requests.
    head: Duration,
    /// Time for the body of a request.
    body: Duration,
    /// Pause after a connection couldn't be accepted, for example because too many files are open.
    pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 100,
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            pause: Duration::from_millis(100),
        }
    }
}

/// Accepts connections and answers their requests, without end.
async fn listen<A, F>(listener: TcpListener, limits: Limits, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = HttpResponse> + Send,
{
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(limits.pause).await;
            continue;
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let mut connection = hyper::server::conn::http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(limits.head);
            connection.serve_connection(TokioIo::new(stream), service).await.or_log("serve a connection");
            drop(place);
        });
    }
}

/// Reads the body of a request, up to [`LONGEST`] and within a limit of time.
async fn read_body(request: Request<Incoming>, within: Duration) -> Result<Request<Bytes>, HttpResponse> {
    let (head, body) = request.into_parts();
    let too_long = || refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    if hyper::body::Body::size_hint(&body).lower() > LONGEST {
        return Err(too_long());
    }
    let body = http_body_util::Limited::new(body, LONGEST as usize).collect();
    match tokio::time::timeout(within, body).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, body.to_bytes())),
        Ok(Err(_)) => Err(too_long()),
        Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive")),
    }
}

async fn answer(service: Service, token: Arc<str>, request: Request<Incoming>) -> HttpResponse {
    if request.uri().path() != "/mcp" {
        return refusal(StatusCode::NOT_FOUND, "not found; the endpoint is /mcp");
    }
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if !given.is_some_and(|(_, given)| is_same(given.trim(), &token)) {
        return refusal(StatusCode::UNAUTHORIZED, "send the token that `tine mcp --http` printed");
    }
    match read_body(request, Limits::default().body).await {
        Ok(request) => service.handle(request.map(Full::new)).await,
        Err(refusal) => refusal,
    }
}

/// Compares without telling by the time it takes how much is right.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn refusal(status: StatusCode, words: &'static str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from_static(words.as_bytes())).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    const SOON: Duration = Duration::from_millis(200);
    /// Longer than the limits in these tests, shorter than the default ones.
    const LATE: Duration = Duration::from_secs(10);

    fn server(connections: usize) -> SocketAddr {
        let limits = Limits { connections, head: SOON, body: SOON, pause: SOON };
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
                tell.send(listener.local_addr().expect("an address")).expect("a listener");
                let answer = move |request| async move {
                    match read_body(request, limits.body).await {
                        Ok(_) => refusal(StatusCode::OK, "done"),
                        Err(refusal) => refusal,
                    }
                };
                listen(listener, limits, answer).await;
            });
        });
        told.recv().expect("an address")
    }

    /// What a client reads until the server closes the connection, if it sends this and then falls silent.
    fn received(address: SocketAddr, sent: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(LATE)).expect("a timeout");
        stream.write_all(sent.as_bytes()).expect("a request");
        let mut received = String::new();
        stream.read_to_string(&mut received).expect("the server closes the connection");
        received
    }

    #[test]
    fn half_sent_and_idle_connections_are_closed() {
        let address = server(100);
        let check = |sent: &str, expected: &str| assert!(received(address, sent).contains(expected), "{sent}");
        check("", "");
        check("POST /mcp HTTP/1.1\r\nHost: x\r\n", "");
        check("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", "408 Request Timeout");
        check("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nfull", "200 OK");
    }

    #[test]
    fn silent_clients_do_not_keep_others_out() {
        let address = server(3);
        let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).expect("a connection")).collect();
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert!(received(address, request).contains("200 OK"));
        drop(silent);
    }
}
