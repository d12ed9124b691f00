//! The same server on a port of this machine, for those who know the token.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::server::Server;
use crate::environment;
use crate::ui;

/// The longest request that is read.
const LONGEST: u64 = 16 << 20;

/// What is shorter can be guessed.
const SHORTEST: usize = 16;

type Service = StreamableHttpService<Server, LocalSessionManager>;

pub(super) async fn serve(server: Server, address: SocketAddr) -> Result<(), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let chosen = environment::mcp_token();
    if chosen.as_ref().is_some_and(|token| token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(format!("TINE_MCP_TOKEN has to be of {SHORTEST} or more plain characters"));
    }
    let token: Arc<str> = chosen.clone().unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()).into();
    // Pages in a browser have no business here, wherever they come from.
    let config = StreamableHttpServerConfig::default().enforce_origin_validation();
    let service: Service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
    ui::say(&format!("listening on http://{address}/mcp"));
    ui::say(&match chosen {
        Some(_) => "send TINE_MCP_TOKEN with each request: Authorization: Bearer TOKEN".to_owned(),
        None => format!("send this with each request: Authorization: Bearer {token}"),
    });
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (service, token) = (service.clone(), Arc::clone(&token));
                tokio::spawn(async move {
                    let answer = hyper::service::service_fn(move |request| answer(service.clone(), Arc::clone(&token), request));
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

async fn answer(
    service: Service,
    token: Arc<str>,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    if request.uri().path() != "/mcp" {
        return Ok(refusal(StatusCode::NOT_FOUND, "there is only /mcp"));
    }
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if !given.is_some_and(|(_, given)| is_same(given.trim(), &token)) {
        return Ok(refusal(StatusCode::UNAUTHORIZED, "send the token that `tine mcp --http` printed"));
    }
    let size = hyper::body::Body::size_hint(request.body());
    if size.lower() > LONGEST {
        return Ok(refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long"));
    }
    let request = request.map(|body| http_body_util::Limited::new(body, LONGEST as usize));
    Ok(service.handle(request).await)
}

/// Compares without telling by the time it takes how much is right.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn refusal(status: StatusCode, words: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(words.as_bytes())).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
    }
    response
}
