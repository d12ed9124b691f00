//! Processes, as the registry records them: recognised later even if their numbers were given to others.

use std::fs;

/// A process and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    /// When it began, as the system reports it.
    pub start: String,
}

impl Process {
    /// This process, if the system reports when processes start.
    pub(crate) fn current() -> Option<Self> {
        let pid = std::process::id();
        agents::process_start(pid).map(|start| Process { pid, start })
    }

    pub(crate) fn is_running(&self) -> bool {
        agents::process_start(self.pid).as_deref() == Some(&self.start)
    }
}

/// The process that becomes the agent of a started session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// This process.
    Process(Process),
    /// Any process: tine printed the command, or opened a pane that hasn't reported its process yet.
    Anybody,
}

impl Launcher {
    /// What the registry holds: the number of the process and when it began, or neither.
    pub(super) fn recorded(pid: Option<u32>, start: Option<String>) -> Self {
        pid.zip(start).map_or(Launcher::Anybody, |(pid, start)| Launcher::Process(Process { pid, start }))
    }

    /// The process, if it is known.
    pub(super) fn process(&self) -> Option<&Process> {
        match self {
            Launcher::Process(process) => Some(process),
            Launcher::Anybody => None,
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.pid)
    }

    /// Whether the session may still begin.
    pub(crate) fn may_begin(&self) -> bool {
        match self {
            Launcher::Process(process) => process.is_running(),
            Launcher::Anybody => true,
        }
    }
}

/// The process that carries out an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// As it is recorded: its number, when it began, and the namespace that numbers it. Older versions left out the
    /// namespace.
    text: String,
}

impl Owner {
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        let start = agents::process_start(pid).unwrap_or_default();
        Owner { text: format!("{pid} {start} {}", namespace()) }
    }

    /// What the registry holds.
    pub(super) fn recorded(text: String) -> Self {
        Owner { text }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is known to have ended. A process of another container can't be seen from here.
    pub(super) fn has_ended(&self, here: &str) -> bool {
        let mut words = self.text.splitn(3, ' ');
        let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
        let start = words.next().unwrap_or_default();
        let is_visible = words.next().is_none_or(|namespace| namespace == here);
        is_visible && agents::process_start(pid).is_none_or(|now| now != start)
    }
}

/// The namespace in which this process has its number.
pub(super) fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_namespace_is_not_known_to_have_ended() {
        let here = namespace();
        assert!(!Owner::current().has_ended(&here));
        for (text, has_ended) in [("4194305 1", true), ("4194305 1 pid:[1]", false), ("nonsense", true)] {
            assert_eq!(Owner::recorded(text.into()).has_ended(&here), has_ended, "{text}");
        }
    }
}
