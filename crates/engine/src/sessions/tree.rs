//! Lineage as trees: every session below the one that it was forked from.

use std::collections::{HashMap, HashSet};

use serde::{Serialize, Serializer};
use transcript::{Agent, ParentView, SessionId, SessionName, SessionView};

use crate::ctx::Ctx;
use crate::sessions::Result;
use crate::sessions::project::Project;
use crate::sessions::session::Session;

/// Which trees of forks to show.
#[derive(Debug, Clone, Copy)]
pub enum Trees<'a> {
    /// The one that holds this session.
    Of(&'a Session),
    /// Those with a session in this directory's project.
    Here,
    /// All of them.
    Everywhere,
}

/// One session in a tree of forks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// The session, or what is known about it if its file is missing.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "KnownView<'static>"))]
    pub session: Known,
    /// The ids that it had before it was cleared.
    #[serde(skip)]
    pub earlier: Vec<SessionId>,
    /// Its forks, oldest first.
    pub children: Vec<Node>,
}

/// A session, or the trace of one.
#[derive(Debug, Clone)]
pub enum Known {
    /// Its file exists.
    Here(Box<Session>),
    /// Only its forks remember it.
    Gone(ParentView),
}

/// Its JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum KnownView<'a> {
    Here(&'a SessionView),
    Gone { agent: Agent, id: &'a SessionId, name: Option<&'a SessionName>, gone: bool },
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let view = match self {
            Known::Here(session) => KnownView::Here(&session.view),
            Known::Gone(ParentView { agent, id, name, .. }) => {
                KnownView::Gone { agent: *agent, id, name: name.as_ref(), gone: true }
            }
        };
        view.serialize(serializer)
    }
}

impl Node {
    /// Whether the tree holds the session that has this agent and id, or had it before it was cleared.
    fn holds(&self, agent: Agent, id: &SessionId) -> bool {
        let (own_agent, own_id) = match &self.session {
            Known::Here(session) => (session.view.agent, &session.view.id),
            Known::Gone(parent) => (parent.agent, &parent.id),
        };
        let own = own_agent == agent && (own_id == id || self.earlier.contains(id));
        own || self.children.iter().any(|child| child.holds(agent, id))
    }

    /// Whether a session of the tree works in a project.
    fn is_in(&self, project: &Project) -> bool {
        let own = match &self.session {
            Known::Here(session) => session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd)),
            Known::Gone(_) => false,
        };
        own || self.children.iter().any(|child| child.is_in(project))
    }
}

/// The trees of forks among `sessions`, the most recently used first. A session without forks is only included if it
/// was requested.
pub(crate) fn trees(ctx: &Ctx, sessions: &[Session], asked: Trees<'_>) -> Result<Vec<Node>> {
    let mut trees = forest(sessions, &ctx.registry().holders()?);
    match asked {
        Trees::Of(session) => trees.retain(|tree| tree.holds(session.view.agent, &session.view.id)),
        Trees::Here => {
            let project = Project::of(&ctx.context().cwd);
            trees.retain(|tree| tree.is_in(&project) && !tree.children.is_empty());
        }
        Trees::Everywhere => trees.retain(|tree| !tree.children.is_empty()),
    }
    Ok(trees)
}

/// An agent and its id for a session.
type Identity = (Agent, SessionId);

/// The forks of a session, in the order of `sessions`.
pub(crate) fn forks_of<'a>(ctx: &Ctx, session: &Session, sessions: &'a [Session]) -> Result<Vec<&'a SessionView>> {
    let holders = ctx.registry().holders()?;
    Ok(forks_among(session, sessions, &holders).into_iter().map(|fork| &fork.view).collect())
}

/// What a session was before it was cleared is the same session to people: the forks of that count as well, and no fork
/// counts twice. `holders` maps former ids to the sessions' present ones.
fn forks_among<'a>(
    session: &Session,
    sessions: &'a [Session],
    holders: &HashMap<Identity, SessionId>,
) -> Vec<&'a Session> {
    let here: HashSet<Identity> = sessions.iter().map(identity).collect();
    let now = |id: Identity| present(id, holders, &|id| here.contains(id));
    let own = now(identity(session));
    let is_fork = |fork: &&Session| {
        let parent = fork.view.parent.as_ref().map(|parent| now((parent.agent, parent.id.clone())));
        let id = identity(fork);
        parent.as_ref() == Some(&own) && id != own && now(id.clone()) == id
    };
    sessions.iter().filter(is_fork).collect()
}

/// The session that an id belongs to now, if it exists.
fn present(id: Identity, holders: &HashMap<Identity, SessionId>, is_here: &dyn Fn(&Identity) -> bool) -> Identity {
    let holder = holders.get(&id).map(|holder| (id.0, holder.clone()));
    holder.filter(is_here).unwrap_or(id)
}

/// All sessions as trees, the family that was used last first. A circle of parents, which only damaged records can
/// form, is cut open. `holders` maps the ids that sessions had before they were cleared to their present ones.
fn forest(sessions: &[Session], holders: &HashMap<Identity, SessionId>) -> Vec<Node> {
    let mut children: HashMap<Identity, Vec<&Session>> = HashMap::new();
    let mut roots: Vec<Identity> = Vec::new();
    let here: HashMap<Identity, &Session> = sessions.iter().rev().map(|session| (identity(session), session)).collect();
    let mut gone: HashMap<Identity, ParentView> = HashMap::new();
    let mut earlier: HashMap<Identity, Vec<SessionId>> = HashMap::new();
    let is_here = |id: &Identity| here.contains_key(id);
    for session in sessions {
        let own = identity(session);
        let now = present(own.clone(), holders, &is_here);
        if now != own {
            earlier.entry(now).or_default().push(own.1);
            continue;
        }
        match &session.view.parent {
            Some(parent) => {
                let named = (parent.agent, parent.id.clone());
                let mut key = present(named.clone(), holders, &is_here);
                if key == own {
                    key = named;
                }
                if !here.contains_key(&key) && !gone.contains_key(&key) {
                    gone.insert(key.clone(), parent.clone());
                    roots.push(key.clone());
                }
                children.entry(key).or_default().push(session);
            }
            None => roots.push(own),
        }
    }
    let mut grown = Growth { here, gone, earlier, children, placed: HashSet::new() };
    let mut trees: Vec<Node> = roots.iter().filter_map(|root| grown.grow(root)).collect();
    // What is still not placed is part of a circle: any of its members serves as the root.
    for session in sessions {
        let now = present(identity(session), holders, &|id| grown.here.contains_key(id));
        trees.extend(grown.grow(&now));
    }
    trees.sort_by_key(|tree| std::cmp::Reverse(newest(tree)));
    trees
}

struct Growth<'a> {
    here: HashMap<Identity, &'a Session>,
    gone: HashMap<Identity, ParentView>,
    earlier: HashMap<Identity, Vec<SessionId>>,
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
        // Forks created together have the same time; ids of Claude Code are random.
        forks.sort_by(|a, b| {
            let key = |fork: &Session| (fork.view.created, fork.number);
            key(a).cmp(&key(b)).then_with(|| a.view.id.cmp(&b.view.id))
        });
        let children = forks.into_iter().filter_map(|fork| self.grow(&identity(fork))).collect();
        Some(Node { session, earlier: self.earlier.remove(root).unwrap_or_default(), children })
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
