//! Options after `--` that choose a session. tine chooses it, so each is honoured or refused with the command that does it.

use agents::{Choice, Chosen};
use transcript::{Agent, SessionId, SessionView, text};

use crate::run::{Error, Result};

/// The id for a new session. Any other option that chooses a session is refused.
pub(super) fn id_of_start(agent: Agent, chosen: &[Chosen]) -> Result<Option<SessionId>> {
    let given = |choice: Choice| chosen.iter().find(|chosen| chosen.choice == choice);
    let newest = given(Choice::Newest).map(|_| ".".to_owned());
    let session = value_of(chosen).or(newest).unwrap_or_else(|| "SESSION".into());
    if let Some(option) = given(Choice::Rewind) {
        return Err(refusal(option, format!("run `tine fork {session}@TURN`")));
    }
    if let Some(option) = given(Choice::Fork) {
        return Err(refusal(option, format!("run `tine fork {session}`")));
    }
    if let Some(option) = given(Choice::Resume).or(given(Choice::Newest)) {
        return Err(refusal(option, format!("run `tine resume {session}`")));
    }
    let mut id = None;
    for option in chosen {
        match option.choice {
            Choice::NewId => {
                let value = option.value.clone().unwrap_or_default();
                let parsed = uuid::Uuid::try_parse(&value).ok().and_then(|uuid| SessionId::new(uuid.to_string()).ok());
                id = Some(parsed.ok_or(Error::BadSessionId { agent, id: value })?);
            }
            Choice::Name => return Err(refusal(option, "run `tine start NAME`".into())),
            Choice::Directory => return Err(refusal(option, "run `tine start` in that directory".into())),
            Choice::Fetch => return Err(fetched(agent, option)),
            Choice::Resume | Choice::Newest | Choice::Fork | Choice::Rewind => {}
        }
    }
    Ok(id)
}

/// Refuses options that would resume another session, or this one in another way.
pub(super) fn check_resume(session: &SessionView, chosen: &[Chosen]) -> Result<()> {
    let label = session.label();
    // Options that do more than resume show what the user wants.
    let weight = |chosen: &&Chosen| match chosen.choice {
        Choice::Rewind => 2,
        Choice::Fork => 1,
        _ => 0,
    };
    let Some(option) = chosen.iter().rev().max_by_key(weight) else {
        return Ok(());
    };
    let other = value_of(chosen).filter(|other| *other != session.id.as_str() && other != label);
    let wanted = other.as_deref().unwrap_or(label);
    let instead = match option.choice {
        Choice::Rewind => format!("run `tine fork {wanted}@TURN`"),
        Choice::Fork => format!("run `tine fork {wanted}`"),
        Choice::Resume | Choice::Newest if other.is_some() => format!("run `tine resume {wanted}`"),
        Choice::Resume | Choice::Newest | Choice::NewId => {
            format!("leave it out: `tine resume {label}` continues that session under its own id")
        }
        Choice::Name => format!("run `tine rename {label} NAME`"),
        Choice::Directory => format!("run `tine resume {label} --to DIR`"),
        Choice::Fetch => return Err(fetched(session.agent, option)),
    };
    Err(refusal(option, instead))
}

/// The session that is named.
fn value_of(chosen: &[Chosen]) -> Option<String> {
    let mut named = chosen.iter().filter(|chosen| matches!(chosen.choice, Choice::Resume | Choice::Fork));
    named.find_map(|chosen| chosen.value.as_deref()).map(text::one_line)
}

fn written(option: &Chosen) -> String {
    let words = [Some(option.flag.as_str()), option.value.as_deref()];
    text::one_line(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn refusal(option: &Chosen, instead: String) -> Error {
    Error::SessionOption { option: written(option), instead }
}

fn fetched(agent: Agent, option: &Chosen) -> Error {
    let command = format!("{} {}", agent.as_str(), written(option));
    refusal(option, format!("run `{command}` yourself, then name the session with `tine adopt`"))
}
