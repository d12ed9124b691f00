//! Nothing leaves the machine: by the network namespace where `./test` made one, by closed proxies everywhere.

use std::ffi::OsStr;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use testkit::Sandbox;

/// `./test` sets the variable when it runs the tests in a namespace of their own; then no other machine is reachable.
/// Connecting a datagram socket asks for a route and sends nothing.
#[test]
fn no_other_machine_is_reachable_in_the_namespace() {
    if std::env::var_os("TINE_TEST_NETNS").is_none() {
        return;
    }
    for (own, other) in [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")] {
        let Ok(socket) = UdpSocket::bind(own) else { continue };
        let connected = socket.connect(other);
        assert!(connected.is_err(), "there is a route to {other} although TINE_TEST_NETNS is set");
    }
}

#[test]
fn the_proxies_of_the_sandbox_are_closed() {
    let sandbox = Sandbox::new();
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        let value = sandbox.environment().get(OsStr::new(name)).expect("a proxy variable");
        let address = value.to_str().and_then(|url| url.strip_prefix("http://")).expect("an address");
        let connected = TcpStream::connect_timeout(&address.parse().expect("an address"), Duration::from_secs(1));
        assert!(connected.is_err(), "{name} points to {address}, where somebody listens");
    }
    assert_eq!(sandbox.environment().get(OsStr::new("no_proxy")).expect("no_proxy"), "127.0.0.1,localhost");
}
