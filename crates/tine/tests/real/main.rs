//! The real agents talk to the model double; what tine reads of it is held against what the model saw.
//!
//! Needs the feature `real-agents` and the agents that `./test` installs.

/// Makes a test of each function for each version.
macro_rules! for_each_version {
    ($($module:ident = $version:literal),+ => [$($test:ident),+ $(,)?]) => {
        for_each_version!(@modules [$($module = $version),+] [$($test),+]);
    };
    (@modules [$($module:ident = $version:literal),+] $tests:tt) => {
        $(for_each_version!(@module $module $version $tests);)+
    };
    (@module $module:ident $version:literal [$($test:ident),+]) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test($version);
            })+
        }
    };
}

mod claude;
mod codex;
mod told;
