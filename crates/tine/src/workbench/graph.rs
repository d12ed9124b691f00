//! Lineage as rows of a list: every session below the one that it was forked from, grouped by where they work.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use transcript::{Agent, SessionId, SessionView};

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// The heading of a group.
    Heading(String),
    /// A session.
    Session {
        /// Its place in the list of sessions.
        index: usize,
        /// The branches to the left of it, such as `│ └─@2 `.
        branches: String,
    },
}

/// The heading of the sessions that wait for the user.
pub(crate) const NEEDS_YOU: &str = "NEEDS YOU";

/// The rows for the shown sessions, in this order. Those that wait for the user come first, in a separate group.
pub(crate) fn rows(
    sessions: &[&SessionView],
    order: &[usize],
    waiting: &[usize],
    shown: impl Fn(usize) -> bool,
    home: &Path,
) -> Vec<Row> {
    let forest = Forest::new(sessions, shown);
    let mut rows = Vec::new();
    if !waiting.is_empty() {
        rows.push(Row::Heading(NEEDS_YOU.to_owned()));
        rows.extend(waiting.iter().map(|index| Row::Session { index: *index, branches: String::new() }));
    }
    // Groups come in the order of their first session.
    let mut groups: Vec<(PathBuf, Vec<usize>)> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for root in order.iter().copied().filter(|index| forest.is_root(*index)) {
        let directory = group(sessions[root].cwd.as_deref());
        let place = *places.entry(directory).or_insert_with_key(|directory| {
            groups.push((directory.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(root);
    }
    for (directory, roots) in groups {
        rows.push(Row::Heading(short(&directory, home)));
        for root in roots {
            forest.add(root, "", "", sessions, &mut rows);
        }
    }
    rows
}

/// A path with `~` for the home directory.
pub(crate) fn short(path: &Path, home: &Path) -> String {
    let shown = match path.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    };
    transcript::text::one_line(&shown)
}

/// The directory of a session; that of the repository for one in tine's folder of worktrees.
fn group(cwd: Option<&Path>) -> PathBuf {
    let Some(cwd) = cwd else { return PathBuf::from("(unknown directory)") };
    let folder = cwd.parent().and_then(|folder| Some((folder, folder.file_name()?.to_str()?)));
    match folder.and_then(|(folder, name)| Some(folder.with_file_name(name.strip_suffix(".worktrees")?))) {
        Some(repository) => repository,
        None => cwd.to_owned(),
    }
}

struct Forest {
    is_shown: Vec<bool>,
    /// The nearest ancestor that is shown.
    parent: Vec<Option<usize>>,
    children: BTreeMap<usize, Vec<usize>>,
}

impl Forest {
    fn new(sessions: &[&SessionView], shown: impl Fn(usize) -> bool) -> Self {
        let mut places: HashMap<(Agent, &SessionId), usize> = HashMap::new();
        for (index, session) in sessions.iter().enumerate() {
            places.entry((session.agent, &session.id)).or_insert(index);
        }
        let is_shown: Vec<bool> = (0..sessions.len()).map(shown).collect();
        let parent_of = |index: usize| {
            let parent = sessions[index].parent.as_ref()?;
            places.get(&(parent.agent, &parent.id)).copied().filter(|parent| *parent != index)
        };
        let mut parent = vec![None; sessions.len()];
        let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in (0..sessions.len()).filter(|index| is_shown[*index]) {
            let mut at = parent_of(index);
            // Files can claim anything, such as a circle.
            let mut steps = 0;
            while let Some(found) = at.filter(|found| !is_shown[*found] && steps < sessions.len()) {
                at = parent_of(found);
                steps += 1;
            }
            parent[index] = at.filter(|found| is_shown[*found] && !leads_to(&parent, *found, index));
            if let Some(parent) = parent[index] {
                children.entry(parent).or_default().push(index);
            }
        }
        for forks in children.values_mut() {
            forks.sort_by_key(|fork| (sessions[*fork].parent.as_ref().and_then(|it| it.turn), sessions[*fork].created));
        }
        Forest { is_shown, parent, children }
    }

    fn is_root(&self, index: usize) -> bool {
        self.is_shown[index] && self.parent[index].is_none()
    }

    fn add(&self, index: usize, own: &str, below: &str, sessions: &[&SessionView], rows: &mut Vec<Row>) {
        // The deepest chains would not fit on any screen.
        const MOST_DEPTH: usize = 40;
        let mut stack = vec![(index, own.to_owned(), below.to_owned(), 0)];
        while let Some((index, own, below, depth)) = stack.pop() {
            rows.push(Row::Session { index, branches: own });
            let forks = self.children.get(&index).map(Vec::as_slice).unwrap_or_default();
            for (place, fork) in forks.iter().enumerate().rev() {
                let turn = sessions[*fork].parent.as_ref().and_then(|parent| parent.turn);
                let turn = turn.map(|turn| format!("@{turn} ")).unwrap_or_default();
                let (corner, line) = if place + 1 == forks.len() { ("└─", "  ") } else { ("├─", "│ ") };
                let base = if depth < MOST_DEPTH { below.as_str() } else { "" };
                stack.push((*fork, format!("{base}{corner}{turn}"), format!("{base}{line}"), depth + 1));
            }
        }
    }
}

fn leads_to(parent: &[Option<usize>], from: usize, to: usize) -> bool {
    let mut at = Some(from);
    while let Some(index) = at {
        if index == to {
            return true;
        }
        at = parent[index];
    }
    false
}
