//! Just enough HTTP/1.1 for two agents on loopback: one request per connection, answered and closed.
//!
//! It leaves the meaning of a request to [`super::request`] and the wording of an answer to the two API modules.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// The largest head that is accepted; real agents send about 2 KB.
const HEAD_LIMIT: usize = 256 * 1024;

/// A request as it came over the wire.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    /// The target with its query string, as `/v1/messages?beta=true`.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request, or `None` when the peer closed the connection without sending one.
pub(crate) fn read_request(stream: &mut TcpStream) -> io::Result<Option<RawRequest>> {
    let mut received = Vec::with_capacity(8 * 1024);
    let (mut request, head_length) = loop {
        if let Some(parsed) = parse_head(&received)? {
            break parsed;
        }
        if received.len() > HEAD_LIMIT {
            return Err(invalid("the request head is too long"));
        }
        let mut chunk = [0_u8; 8 * 1024];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        received.extend_from_slice(&chunk[..count]);
    };
    if header(&request.headers, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let rest = received.split_off(head_length);
    request.body = if header(&request.headers, "transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        read_chunked(rest, stream)?
    } else {
        let length = header(&request.headers, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        read_sized(rest, stream, length)?
    };
    Ok(Some(request))
}

/// Answers with a complete body.
pub(crate) fn respond(
    stream: &mut TcpStream,
    status: u16,
    content_type: &str,
    body: &str,
    head_only: bool,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nrequest-id: req_testkit\r\nconnection: close\r\n\r\n",
        reason(status),
        body.len(),
    );
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// Starts an event stream; its end is the end of the connection.
pub(crate) fn start_events(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nrequest-id: req_testkit\r\nconnection: close\r\n\r\n",
    )?;
    stream.flush()
}

/// Whether the peer has hung up. An agent that interrupts a turn does so in the middle of a stream.
pub(crate) fn hung_up(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let seen = stream.peek(&mut byte);
    let restored = stream.set_nonblocking(false);
    restored.is_err()
        || match seen {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
}

/// The value of a header, whatever its letter case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn parse_head(received: &[u8]) -> io::Result<Option<(RawRequest, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = parsed.parse(received).map_err(|error| invalid(&error.to_string()))?;
    let httparse::Status::Complete(head_length) = status else {
        return Ok(None);
    };
    let request = RawRequest {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((request, head_length)))
}

fn read_sized(mut body: Vec<u8>, stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let missing = length.saturating_sub(body.len());
    stream.take(missing as u64).read_to_end(&mut body)?;
    body.truncate(length);
    Ok(body)
}

fn read_chunked(buffered: Vec<u8>, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut input = io::BufReader::new(io::Cursor::new(buffered).chain(stream));
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        io::BufRead::read_line(&mut input, &mut line)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| invalid("a chunk size is not hexadecimal"))?;
        let start = body.len();
        body.resize(start + size, 0);
        input.read_exact(&mut body[start..])?;
        let mut end_of_chunk = [0_u8; 2];
        input.read_exact(&mut end_of_chunk)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        529 => "Overloaded",
        _ => "Status",
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
