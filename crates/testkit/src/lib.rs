//! What tests of tine stand on: a hermetic home, a model double on loopback, drivers for the real agents, stand-ins for an
//! agent and for terminals, and builders of synthetic sessions.
//!
//! Nothing here is part of the product. It talks to loopback only, ends what it started, and panics with a message
//! for the reader of a failed test instead of returning errors.

pub mod agents;
pub mod build;
pub mod damage;
pub mod golden;
pub mod mcp;
pub mod model;
pub mod poll;
pub mod process;
pub mod sandbox;
pub mod schema;
pub mod stand_in;
pub mod tmux;

pub use agents::{ClaudeDriver, CodexDriver, GeminiDriver};
pub use mcp::McpClient;
pub use model::{Gate, Model, Reply};
pub use sandbox::Sandbox;
pub use stand_in::{StandIn, Terminal};
pub use tmux::{Pane, Tmux};

/// Makes one test per version out of each case.
#[macro_export]
macro_rules! for_each_version {
    ($($module:ident = $version:literal),+ => $cases:tt) => {
        $($crate::for_each_version!(@module $module $version $cases);)+
    };
    (@module $module:ident $version:literal [$($case:ident),+ $(,)?]) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    super::$case($version);
                }
            )+
        }
    };
}
