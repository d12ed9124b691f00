//! `tine mcp`: agents find, fork and drive sessions by the Model Context Protocol.
//!
//! A tool is one type: its fields are its arguments, with their schema, and [`tool::Arguments`] implements it. Each
//! call opens a new engine and runs on its own thread, so that a slow call blocks no other; nothing is opened before
//! the first call. [`policy`] decides what agents may do.

mod caller;
mod http;
#[cfg(test)]
mod messages_tests;
mod policy;
mod resources;
mod server;
mod stdio;
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
use stdio::Stdio;

/// Run the MCP server that lets agents use tine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Agents start the server themselves; `tine setup` registers it. With --http, clients must send the token that the server \
prints. The [mcp] section of the configuration file controls what agents may do.

Examples:
  tine mcp
  tine mcp --http 127.0.0.1:7777")]
pub(crate) struct Args {
    /// Listen on a local port instead of standard input and output [default: 127.0.0.1, any free port]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = address)]
    pub http: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let named = || text.strip_prefix("localhost:")?.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    match text.parse::<SocketAddr>().ok().or(port).or_else(named) {
        Some(address) if address.ip().is_loopback() => Ok(address),
        Some(_) => Err("must be a loopback address, for example `127.0.0.1:7777`".into()),
        None => Err("use a port or ADDRESS:PORT, for example `127.0.0.1:7777`".into()),
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    memory::share();
    let server = Server::new(environment::context()?);
    let failed = |message: String| Failure::Other { kind: "mcp", message, hint: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(format!("cannot start the server: {error}")))?;
    let served: Result<(), String> = runtime.block_on(async {
        match args.http {
            Some(address) => http::serve(server, address).await,
            None => match server.serve(Stdio::new(tokio::io::stdin(), tokio::io::stdout())).await {
                Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
                Err(error) => Err(format!("the client did not initialize the connection: {error}")),
            },
        }
    });
    // Calls that still wait for an agent have no client left.
    runtime.shutdown_background();
    served.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
