//! The server on a port: for those who know the token, on this machine, and no page of a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use super::*;

/// A server that ends with the test.
struct Listening {
    child: Child,
    port: u16,
    token: String,
}

impl Listening {
    fn start(lab: &Lab<'_>) -> Self {
        let mut command = lab.server(&["--http"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("tine");
        let mut lines = BufReader::new(child.stderr.take().expect("its talk")).lines().map_while(Result::ok);
        let mut after = |mark: &str| {
            let line = lines.next().unwrap_or_default();
            line.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in {line:?}")).1.to_owned()
        };
        let port = after("http://127.0.0.1:").trim_end_matches("/mcp").parse().expect("a port");
        let token = after("Authorization: Bearer ");
        Listening { child, port, token }
    }

    fn client(&self, lab: &Lab<'_>, elicitation: bool) -> McpClient {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let headers = json!({"Authorization": format!("Bearer {}", self.token)});
        McpClient::over_http(lab.sandbox, &url, &headers, elicitation).expect("a connection")
    }

    /// What an HTTP request with these headers is answered.
    fn request(&self, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let mut request = format!("POST {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
        request.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        testkit::process::end(&mut self.child);
    }
}

#[test]
fn only_who_knows_the_token_is_answered() {
    with_lab(|lab| {
        let server = Listening::start(lab);
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        for headers in [json!({}), json!({"Authorization": "Bearer guessed"})] {
            let refused = McpClient::over_http(lab.sandbox, &url, &headers, false).err().expect("a refusal");
            assert!(refused.code == Some(401) || refused.message.contains("nauthorized"), "{refused:?}");
        }
        let client = server.client(lab, false);
        assert_eq!(client.server["server"]["name"], "tine");
        assert_eq!(client.tools().len(), 17);

        let (bearer, host) = (format!("Bearer {}", server.token), format!("127.0.0.1:{}", server.port));
        let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
        let check = |status: u16, path: &str, headers: &[(&str, &str)]| {
            let answer = server.request(path, headers, begin);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers:?}: {answer}");
            answer
        };
        let token = ("Authorization", bearer.as_str());
        let own = ("Host", host.as_str());
        let answer = check(200, "/mcp", &[own, token]);
        assert!(!answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
        let answer = check(401, "/mcp", &[own]);
        assert!(answer.to_ascii_lowercase().contains("www-authenticate: bearer"), "{answer}");
        let shorter = &bearer[..bearer.len() - 1];
        for wrong in ["Bearer", "Bearer ", "Basic x", &server.token, shorter, &format!("{bearer}0")] {
            check(401, "/mcp", &[own, ("Authorization", wrong)]);
        }
        check(404, "/", &[own, token]);
        check(403, "/mcp", &[("Host", "evil.example"), token]);
        check(403, "/mcp", &[("Host", "127.0.0.1.evil.example"), token]);
        for origin in ["http://evil.example", "null", &format!("http://{host}")] {
            check(403, "/mcp", &[own, token, ("Origin", origin)]);
        }
        only_loopback_listens(server.port);
    });
}

/// Every socket that listens on the port is on an address of this machine alone.
fn only_loopback_listens(port: u16) {
    let mut found = 0;
    for (file, loopback) in [("/proc/net/tcp", "0100007F"), ("/proc/net/tcp6", "00000000000000000000000001000000")] {
        for line in std::fs::read_to_string(file).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (address, its_port) = fields[1].split_once(':').expect("an address");
            if fields[3] == "0A" && u16::from_str_radix(its_port, 16) == Ok(port) {
                assert_eq!(address, loopback, "{line}");
                found += 1;
            }
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn it_listens_on_this_machine_only() {
    with_lab(|lab| {
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:80", "example.invalid:80", "everywhere"] {
            let refused = lab.server(&["--http", address]).output().expect("tine");
            assert_eq!(refused.status.code(), Some(2), "{address}: {refused:?}");
        }
    });
}

#[test]
fn calls_by_http_are_answered_beside_each_other_and_cancelled() {
    with_lab(|lab| {
        lab.uploads();
        lab.configure("[mcp]\nstop = \"ask\"\n");
        let server = Listening::start(lab);
        let (one, other) = (server.client(lab, true), server.client(lab, false));
        let output = json!({"sessions": [UPLOADS], "message": "take your time", "wait": "all"});
        let slow = one.begin("send_message", output);
        lab.model.wait_for_prompt("take your time", PATIENCE);
        for client in [&one, &other] {
            assert_eq!(client.tool("get_session", json!({"session": UPLOADS}))["id"], UPLOADS);
        }
        assert!(!one.is_finished(slow));
        let stop = one.begin("stop_sessions", json!({"sessions": [UPLOADS]}));
        one.answer(&one.question(), false);
        assert_eq!(testkit::mcp::tool_error_in(&one.finish(stop))["kind"], "not_allowed");
        assert!(!one.is_finished(slow));
        // A plan is everybody's who is at this server.
        let plan = one.tool("plan_fork", json!({"session": format!("{UPLOADS}@1"), "name": "shared"}));
        assert_eq!(other.tool("fork_session", json!({"token": plan["token"]}))["session"]["name"], "shared");
        one.cancel(slow);
        one.finish(slow).expect_err("cancelled");
        lab.no_agent_is_left();
    });
}

#[test]
fn a_token_can_be_chosen() {
    with_lab(|lab| {
        let short = lab.server(&["--http"]).env("TINE_MCP_TOKEN", "guessable").output().expect("tine");
        assert!(!short.status.success(), "{short:?}");
        let output = testkit::sandbox::text(&short.stderr);
        assert!(output.contains("TINE_MCP_TOKEN must have at least 16 printable ASCII characters"), "{output}");
        let chosen = "a-token-of-my-own-choice";
        let mut child =
            lab.server(&["--http"]).env("TINE_MCP_TOKEN", chosen).stderr(Stdio::piped()).spawn().expect("tine");
        let mut lines = BufReader::new(child.stderr.take().expect("its talk")).lines().map_while(Result::ok);
        let port = lines.next().unwrap_or_default();
        let port = port.rsplit(':').next().unwrap_or_default().trim_end_matches("/mcp").parse().expect("a port");
        assert!(!lines.next().unwrap_or_default().contains(chosen), "it is not printed");
        let server = Listening { child, port, token: chosen.to_owned() };
        server.client(lab, false).close();
    });
}
