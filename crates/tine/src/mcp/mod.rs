//! `tine mcp`: agents find, fork and drive sessions by the Model Context Protocol.
//!
//! A tool is one type: its fields are its arguments, with their schema, and [`tool::Arguments`] says what it does. Each
//! call opens the engine anew and runs on a thread of its own, so that a slow one holds up nobody; nothing is opened
//! before something is asked. What agents may do is decided in [`policy`].

mod caller;
mod http;
mod policy;
mod resources;
mod server;
mod tool;
mod tools;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use rmcp::ServiceExt;

use crate::Outcome;
use crate::environment;
use crate::failure::Failure;
use crate::memory;
use server::Server;

/// Let agents search, fork and drive sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Agents start this themselves: `tine setup` enters it where they look. It speaks the Model Context Protocol on standard
input and output; with --http on a port of this machine, for those who send the token that is printed.

What agents may do stands in the configuration file, under [mcp].

Examples:
  tine mcp
  tine mcp --http 127.0.0.1:7777")]
pub(crate) struct Args {
    /// Listen on this address of this machine instead, by default on any free port
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = address)]
    pub http: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let named = || text.strip_prefix("localhost:")?.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    match text.parse::<SocketAddr>().ok().or(port).or_else(named) {
        Some(address) if address.ip().is_loopback() => Ok(address),
        Some(_) => Err("only this machine may ask; for example `127.0.0.1:7777`".into()),
        None => Err("a port, or an address with one; for example `127.0.0.1:7777`".into()),
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    memory::share();
    let server = Server::new(environment::context()?);
    let failed = |message: String| Failure::Other { kind: "mcp", message, hint: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(format!("cannot begin: {error}")))?;
    let served: Result<(), String> = runtime.block_on(async {
        match args.http {
            Some(address) => http::serve(server, address).await,
            None => match server.serve(rmcp::transport::stdio()).await {
                Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
                Err(error) => Err(format!("the client did not begin as it should: {error}")),
            },
        }
    });
    // What still waits for an agent has nobody to tell it to.
    runtime.shutdown_background();
    served.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
