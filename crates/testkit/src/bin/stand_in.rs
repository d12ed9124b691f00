//! Stands in for whatever program it is called as: `tmux`, `wezterm`, `kitty`, `zellij` or `claude`.

fn main() -> std::process::ExitCode {
    testkit::stand_in::main()
}
