//! All actions of keys in one table, for the keys, the palette, the help and `tine config keys`.

use std::collections::BTreeMap;

mod key;

pub(crate) use key::Key;

/// Where a key works. A key without a meaning there may have one everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Context {
    /// On every screen, unless the screen itself gives the key a meaning.
    Everywhere,
    /// In the list of sessions.
    Sessions,
    /// In a transcript.
    Transcript,
    /// In the search.
    Search,
    /// In a chat.
    Chat,
    /// In a chat whose agent has a request.
    Request,
}

impl Context {
    /// Its name in the configuration and in `tine config keys`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Context::Everywhere => "everywhere",
            Context::Sessions => "sessions",
            Context::Transcript => "transcript",
            Context::Search => "search",
            Context::Chat => "chat",
            Context::Request => "request",
        }
    }
}

macro_rules! actions {
    ($($variant:ident $context:ident $name:literal [$($key:literal),*] $what:literal)*) => {
        /// An action of a key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Action {
            $(#[doc = $what] $variant,)*
        }

        /// All actions.
        pub(crate) const ACTIONS: &[ActionInfo] = &[
            $(ActionInfo {
                action: Action::$variant,
                context: Context::$context,
                name: $name,
                keys: &[$($key),*],
                what: $what,
            },)*
        ];
    };
}

/// The description of an action.
#[derive(Debug)]
pub(crate) struct ActionInfo {
    /// The action.
    pub action: Action,
    /// Where it works.
    pub context: Context,
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its default keys.
    pub keys: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
}

actions! {
    Quit Everywhere "quit" ["ctrl+c"] "quit"
    Help Everywhere "help" ["?", "f1"] "help"
    Palette Everywhere "palette" ["ctrl+p", "f2"] "find an action"
    CommandLine Everywhere "command-line" [":"] "command line"
    NextTab Everywhere "next-tab" ["alt+right", "alt+n"] "next tab"
    PreviousTab Everywhere "previous-tab" ["alt+left", "alt+p"] "previous tab"
    NextWaiting Everywhere "next-waiting" ["alt+w"] "next session that needs you"
    NewChat Everywhere "new-chat" ["alt+t"] "new chat"
    Mouse Everywhere "mouse" ["alt+z"] "mouse off, wheel or full"

    Open Sessions "open" ["enter"] "open"
    Chat Sessions "chat" ["c"] "chat"
    Fork Sessions "fork" ["f", "alt+shift+f"] "fork"
    Search Sessions "search" ["/"] "search"
    Filter Sessions "filter" ["i"] "filter"
    Waiting Sessions "waiting" ["w"] "next one that needs you"
    Scope Sessions "scope" ["tab"] "scope"
    Agent Sessions "agent" ["a"] "agent"
    Sort Sessions "sort" ["s"] "sort"
    Rename Sessions "rename" ["r"] "rename"
    Delete Sessions "delete" ["d"] "delete"
    Adopt Sessions "adopt" ["n"] "name"
    Clone Sessions "clone" ["y"] "clone"
    OpenPane Sessions "open-pane" ["p"] "open in a pane"
    Undo Sessions "undo" ["u"] "undo"
    Log Sessions "log" ["l"] "operations"
    Parent Sessions "parent" ["left", "h"] "parent"
    Child Sessions "child" ["right"] "first fork"
    Down Sessions "down" ["down", "j"] "next"
    Up Sessions "up" ["up", "k"] "previous"
    PageDown Sessions "page-down" ["pagedown"] "page down"
    PageUp Sessions "page-up" ["pageup"] "page up"
    First Sessions "first" ["home", "g"] "first"
    Last Sessions "last" ["end", "G"] "last"
    Samples Sessions "samples" ["x"] "sample sessions"
    Reload Sessions "reload" ["ctrl+l"] "refresh the list"
    Leave Sessions "leave" ["q", "esc"] "quit"

    Back Transcript "back" ["esc", "q"] "back"
    NextTurn Transcript "next-turn" ["]", "n"] "next turn"
    PreviousTurn Transcript "previous-turn" ["[", "p"] "previous turn"
    ForkTurn Transcript "fork-turn" ["f", "alt+shift+f"] "fork at this turn"
    EditAndFork Transcript "edit-and-fork" ["e"] "edit this prompt in a fork"
    ChatHere Transcript "chat-here" ["c"] "chat"
    Toggle Transcript "toggle" ["enter"] "fold or open"
    Tools Transcript "tools" ["t"] "all tools"
    Thinking Transcript "thinking" ["T"] "thinking"
    NextBlock Transcript "next-block" ["tab"] "next block"
    PreviousBlock Transcript "previous-block" ["backtab"] "previous block"
    Focus Transcript "focus" ["o"] "prompts and final answers only"
    Find Transcript "find" ["/"] "search within"
    FindNext Transcript "find-next" [","] "next match"
    FindPrevious Transcript "find-previous" [";"] "previous match"
    Copy Transcript "copy" ["y"] "copy the turn as Markdown"
    CopyBlock Transcript "copy-block" ["Y"] "copy the block"
    ScrollDown Transcript "scroll-down" ["down", "j"] "down"
    ScrollUp Transcript "scroll-up" ["up", "k"] "up"
    ScrollPageDown Transcript "scroll-page-down" ["pagedown", "space"] "page down"
    ScrollPageUp Transcript "scroll-page-up" ["pageup"] "page up"
    Begin Transcript "begin" ["home", "g"] "begin"
    End Transcript "end" ["end", "G"] "end"

    OpenHit Search "open-hit" ["enter"] "open at this turn"
    InHits Search "in-hits" ["tab"] "keys for the hits"
    ForkHit Search "fork-hit" ["f", "alt+shift+f", "alt+f"] "fork at this turn"
    ChatHit Search "chat-hit" ["c"] "chat"
    NextHit Search "next-hit" ["down", "j"] "next"
    PreviousHit Search "previous-hit" ["up", "k"] "previous"
    EditQuery Search "edit-query" ["/"] "edit the query"
    LeaveSearch Search "leave-search" ["esc", "q"] "back"

    Send Chat "send" ["enter"] "send"
    Newline Chat "newline" ["ctrl+j", "alt+enter"] "new line"
    Interrupt Chat "interrupt" ["esc"] "interrupt"
    ForkChat Chat "fork-chat" ["alt+shift+f"] "fork"
    Editor Chat "editor" ["ctrl+g"] "write in $EDITOR"
    TakeBack Chat "take-back" ["alt+up"] "unqueue the last message"
    Model Chat "model" ["alt+m"] "model"
    Mode Chat "mode" ["backtab"] "permission mode"
    HandOver Chat "hand-over" ["alt+o"] "the agent's own screen"
    ChatTools Chat "chat-tools" ["ctrl+o"] "tools and thinking"
    ChatUp Chat "chat-up" ["pageup"] "scroll up"
    ChatDown Chat "chat-down" ["pagedown"] "scroll down"
    ToSessions Chat "to-sessions" ["alt+s"] "sessions"
    CopyAnswer Chat "copy-answer" ["alt+y"] "copy the last answer"
    CloseTab Chat "close-tab" ["ctrl+w"] "close the tab"

    Allow Request "allow" ["y"] "allow"
    Always Request "always" ["a"] "always allow"
    Deny Request "deny" ["n"] "deny"
    DenyWithReason Request "deny-with-reason" ["r"] "deny with a reason"
    EditCall Request "edit-call" ["e"] "edit the call"
    InterruptRequest Request "interrupt-request" ["esc"] "deny and interrupt"
}

/// The action of each key.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    bound: BTreeMap<(Context, Key), Action>,
}

impl Keymap {
    /// The default keys, except for actions that `own` configures by name.
    pub(crate) fn new(own: &BTreeMap<String, Vec<String>>) -> Result<Self, KeyError> {
        if let Some(name) = own.keys().find(|name| !ACTIONS.iter().any(|info| info.name == **name)) {
            return Err(KeyError::NoAction(name.clone()));
        }
        let mut bound = BTreeMap::new();
        for info in ACTIONS {
            for key in keys_of(info, own) {
                let key = Key::parse(key).ok_or_else(|| KeyError::NoKey(key.to_owned(), info.name))?;
                let taken = bound.insert((info.context, key), info.action);
                if let Some(other) = taken {
                    return Err(KeyError::Twice(key, self::info(other).name, info.name));
                }
            }
        }
        Ok(Keymap { bound })
    }

    /// The action of a key in a context.
    pub(crate) fn action(&self, context: Context, key: Key) -> Option<Action> {
        let found = self.bound.get(&(context, key)).or_else(|| self.bound.get(&(Context::Everywhere, key)));
        found.copied()
    }

    /// The keys of an action.
    pub(crate) fn keys(&self, action: Action) -> impl Iterator<Item = Key> + '_ {
        // In the order of the table; the first one is shown.
        let bound = self.bound.iter().filter(move |(_, own)| **own == action).map(|((_, key), _)| *key);
        let mut keys: Vec<Key> = bound.collect();
        let usual = |key: &Key| info(action).keys.iter().position(|usual| Key::parse(usual) == Some(*key));
        keys.sort_by_key(|key| (usual(key).unwrap_or(usize::MAX), *key));
        keys.into_iter()
    }
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap::new(&BTreeMap::new()).expect("the table has no key twice")
    }
}

/// The output of `tine config keys`: each action with its keys, its context, and its name in the configuration.
pub(crate) fn table(keymap: &Keymap) -> Vec<[String; 4]> {
    let row = |info: &ActionInfo| {
        let keys: Vec<String> = keymap.keys(info.action).map(|key| key.to_string()).collect();
        [info.context.name().to_owned(), info.name.to_owned(), keys.join(" "), info.what.to_owned()]
    };
    ACTIONS.iter().map(row).collect()
}

/// The description of an action.
pub(crate) fn info(action: Action) -> &'static ActionInfo {
    ACTIONS.iter().find(|info| info.action == action).expect("every action is in the table")
}

fn keys_of<'a>(info: &ActionInfo, own: &'a BTreeMap<String, Vec<String>>) -> Vec<&'a str> {
    match own.get(info.name) {
        Some(keys) => keys.iter().map(String::as_str).collect(),
        None => info.keys.to_vec(),
    }
}

/// An error in the configured keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// An unknown action.
    #[error("no action is called `{0}`")]
    NoAction(String),
    /// An unknown key.
    #[error("`{0}` is not a key; it is set for `{1}`")]
    NoKey(String, &'static str),
    /// A key has two meanings in one place.
    #[error("the key `{0}` is set for both `{1}` and `{2}`")]
    Twice(Key, &'static str, &'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, keys: &[&str]) -> BTreeMap<String, Vec<String>> {
        BTreeMap::from([(name.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())])
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = ACTIONS.iter().map(|info| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ACTIONS.len());
    }

    #[test]
    fn configured_keys_replace_the_usual_ones() {
        let keymap = Keymap::new(&own("fork", &["ctrl+f"])).unwrap();
        assert_eq!(keymap.action(Context::Sessions, Key::Ctrl('f')), Some(Action::Fork));
        assert_eq!(keymap.action(Context::Sessions, Key::Char('f')), None);
        assert_eq!(keymap.action(Context::Sessions, Key::Char('?')), Some(Action::Help));
    }

    #[test]
    fn keys_that_cannot_be_used_are_named() {
        let message = |own| Keymap::new(&own).unwrap_err().to_string();
        assert_eq!(message(own("forks", &["f"])), "no action is called `forks`");
        assert_eq!(message(own("fork", &["hyper+f"])), "`hyper+f` is not a key; it is set for `fork`");
        assert_eq!(message(own("fork", &["r"])), "the key `r` is set for both `fork` and `rename`");
    }
}
