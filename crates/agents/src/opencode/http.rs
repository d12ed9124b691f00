//! A server of OpenCode's own, for what its command line can't do: `opencode serve` on loopback, for as long as it is needed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use diagnostics::OrLog;
use serde_json::Value;

use crate::program::{Program, ProgramError, START_PATIENCE};

/// A running server. It ends when this is dropped.
pub(super) struct Server<'a> {
    program: &'a Program,
    child: Child,
    address: String,
    password: String,
}

impl<'a> Server<'a> {
    /// Starts a server and waits until it listens. Only who knows the password can use it.
    pub(super) fn start(program: &'a Program, directory: &Path) -> Result<Self, ProgramError> {
        let password = uuid::Uuid::new_v4().simple().to_string();
        let mut command = program.command(directory);
        command.args(["serve", "--hostname", "127.0.0.1", "--port", "0"]);
        command.env("OPENCODE_SERVER_PASSWORD", &password).env("OPENCODE_SERVER_USERNAME", "opencode");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = program.spawn(&mut command)?;
        let output = child.stdout.take();
        let (sender, lines) = mpsc::channel();
        // The rest of the output is read as well, so that the server never waits for it.
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("http://") {
                    let end = address.find(|letter: char| letter.is_whitespace() || letter == '/');
                    let sent = sender.send(address[..end.unwrap_or(address.len())].to_owned());
                    sent.or_log("report the address of the server");
                }
            }
        });
        let mut server = Server { program, child, address: String::new(), password };
        server.address = lines.recv_timeout(START_PATIENCE).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => {
                ProgramError::TooSlow { program: program.path.clone(), patience: START_PATIENCE }
            }
            mpsc::RecvTimeoutError::Disconnected => program.failed("its server ended before it listened"),
        })?;
        Ok(server)
    }

    /// Sends a request with a body of JSON, and returns the answer.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, ProgramError> {
        let failed = |error: std::io::Error| self.program.failed(format!("its server does not answer: {error}"));
        let body = body.to_string();
        let login = base64(format!("opencode:{}", self.password).as_bytes());
        let address = &self.address;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {login}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_read_timeout(Some(START_PATIENCE)).map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        // The server keeps the connection open, so the answer itself tells where it ends.
        let (mut answer, mut chunk) = (Vec::new(), [0; 8 << 10]);
        let (status, body) = loop {
            let count = stream.read(&mut chunk).map_err(failed)?;
            answer.extend_from_slice(&chunk[..count]);
            if let Some(whole) = parse(&answer) {
                break whole;
            }
            if count == 0 {
                return Err(self.program.failed("its server sent no valid answer"));
            }
        };
        let json: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status != 200 {
            let said = json.pointer("/data/message").or(json.pointer("/message")).and_then(Value::as_str);
            let said = said.map_or_else(|| format!("status {status}"), str::to_owned);
            return Err(self.program.failed(format!("its server refused: {said}")));
        }
        Ok(json)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).or_log("end the server");
            for _ in 0..100 {
                if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        self.child.kill().or_log("end the server");
        self.child.wait().or_log("wait for the server");
    }
}

/// The status and the body of an answer; nothing as long as a part of it is missing.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    let field = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Some((status, join_chunks(body)?));
    }
    let length = field("content-length").map_or(Some(0), |length| length.parse().ok())?;
    Some((status, body.get(..length)?.to_vec()))
}

fn join_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim().to_owned();
        let size = usize::from_str_radix(&size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let chunk = rest.get(end + 2..end + 2 + size)?;
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + size..)?;
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_both_forms() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse(plain), Some((200, b"{}".to_vec())));
        let chunked =
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Some((404, b"{\"a\":1}".to_vec())));
        for part in [&plain[..plain.len() - 1], &chunked[..chunked.len() - 3], b"HTTP/1.1 200"] {
            assert_eq!(parse(part), None);
        }
        let texts = ["", "a", "ab", "abc", "user:pass"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "YQ==", "YWI=", "YWJj", "dXNlcjpwYXNz"]);
    }
}
