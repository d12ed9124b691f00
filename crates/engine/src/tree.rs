//! Lineage as trees: every session below the one that it was forked from.

use std::collections::{HashMap, HashSet};

use transcript::{Agent, ParentView, SessionId};

use crate::session::Session;

/// One session in a tree of forks.
#[derive(Debug, Clone)]
pub struct Node {
    /// The session, or what is known of one whose file is gone.
    pub session: Known,
    /// Its forks, oldest first.
    pub children: Vec<Node>,
}

/// A session, or the trace of one.
#[derive(Debug, Clone)]
pub enum Known {
    /// Its file is there.
    Here(Box<Session>),
    /// Only its forks remember it.
    Gone(ParentView),
}

impl Node {
    /// Whether the tree holds the session with this agent and id.
    pub fn holds(&self, agent: Agent, id: &SessionId) -> bool {
        let own = match &self.session {
            Known::Here(session) => session.view.agent == agent && session.view.id == *id,
            Known::Gone(parent) => parent.agent == agent && parent.id == *id,
        };
        own || self.children.iter().any(|child| child.holds(agent, id))
    }
}

/// An agent and its id for a session.
pub type Identity = (Agent, SessionId);

/// All sessions as trees, the family that was used last first. A circle of parents, which only damaged records can
/// form, is cut open. `holders` are the sessions that had another id before they were cleared, which are the same to
/// people.
pub fn forest(sessions: &[Session], holders: &HashMap<Identity, SessionId>) -> Vec<Node> {
    let mut children: HashMap<Identity, Vec<&Session>> = HashMap::new();
    let mut roots: Vec<Identity> = Vec::new();
    let here: HashMap<Identity, &Session> = sessions.iter().rev().map(|session| (identity(session), session)).collect();
    let mut gone: HashMap<Identity, ParentView> = HashMap::new();
    for session in sessions {
        match &session.view.parent {
            Some(parent) => {
                let mut key = (parent.agent, parent.id.clone());
                if let Some(holder) = holders.get(&key).map(|id| (parent.agent, id.clone()))
                    && here.contains_key(&holder)
                    && holder != identity(session)
                {
                    key = holder;
                }
                if !here.contains_key(&key) && !gone.contains_key(&key) {
                    gone.insert(key.clone(), parent.clone());
                    roots.push(key.clone());
                }
                children.entry(key).or_default().push(session);
            }
            None => roots.push(identity(session)),
        }
    }
    let mut grown = Growth { here, gone, children, placed: HashSet::new() };
    let mut trees: Vec<Node> = roots.iter().filter_map(|root| grown.grow(root)).collect();
    // What is still not placed is part of a circle: any of its members serves as the root.
    for session in sessions {
        trees.extend(grown.grow(&identity(session)));
    }
    trees.sort_by_key(|tree| std::cmp::Reverse(newest(tree)));
    trees
}

struct Growth<'a> {
    here: HashMap<Identity, &'a Session>,
    gone: HashMap<Identity, ParentView>,
    children: HashMap<Identity, Vec<&'a Session>>,
    placed: HashSet<Identity>,
}

impl Growth<'_> {
    fn grow(&mut self, root: &Identity) -> Option<Node> {
        if !self.placed.insert(root.clone()) {
            return None;
        }
        let session = match self.here.get(root) {
            Some(session) => Known::Here(Box::new((*session).clone())),
            None => Known::Gone(self.gone.get(root)?.clone()),
        };
        let mut forks = self.children.remove(root).unwrap_or_default();
        forks.sort_by(|a, b| a.view.created.cmp(&b.view.created).then_with(|| a.view.id.cmp(&b.view.id)));
        let children = forks.into_iter().filter_map(|fork| self.grow(&identity(fork))).collect();
        Some(Node { session, children })
    }
}

fn identity(session: &Session) -> Identity {
    (session.view.agent, session.view.id.clone())
}

fn newest(tree: &Node) -> Option<jiff::Timestamp> {
    let own = match &tree.session {
        Known::Here(session) => Some(session.updated()),
        Known::Gone(_) => None,
    };
    tree.children.iter().map(newest).max().flatten().max(own)
}
