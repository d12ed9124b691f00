//! `tine completions`: the script that teaches a shell to complete commands, options and session names.

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use clap_complete::env::{EnvCompleter, Fish, Powershell, Zsh};

use crate::Outcome;
use crate::complete;
use crate::environment;
use crate::failure::Failure;
use crate::ui;

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The script completes commands, options, session names and turns.

Examples:
  tine completions bash > ~/.local/share/bash-completion/completions/tine
  tine completions zsh > ~/.zfunc/_tine
  tine completions fish > ~/.config/fish/completions/tine.fish
  tine completions powershell >> $PROFILE")]
pub(crate) struct Args {
    /// Shell to complete for
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let own = environment::own_path();
    let own = own.to_str().ok_or_else(|| Failure::Other {
        kind: "own_path",
        message: "the path of tine is not valid UTF-8".into(),
        hint: Some("install tine in another directory".into()),
    })?;
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => {
            write!(ui::out(), "{}", BASH.replace("{variable}", complete::VARIABLE).replace("{program}", &quoted(own)))?;
            return Ok(ExitCode::SUCCESS);
        }
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
    };
    shell.write_registration(complete::VARIABLE, "tine", "tine", own, &mut ui::out())?;
    Ok(ExitCode::SUCCESS)
}

/// A text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The script for Bash. clap's own takes the words as Bash splits them, at `@`, `:` and `=` too. This one joins them again,
/// so that `auth@` and `agent:` arrive whole, and cuts from the answers what Bash keeps before the last of these signs.
const BASH: &str = r#"_tine_complete() {
    local IFS=$'\013' rest=$COMP_LINE words=() index=0 at word
    for ((at = 0; at < ${#COMP_WORDS[@]}; at++)); do
        word=${COMP_WORDS[at]}
        if ((at == 0)) || [[ $rest == [[:space:]]* ]]; then
            rest=${rest#"${rest%%[![:space:]]*}"}
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
        rest=${rest#"$word"}
        ((at == COMP_CWORD)) && index=$((${#words[@]} - 1))
    done
    local current=${words[index]} kept=
    if [[ $COMP_WORDBREAKS == *@* || $COMP_WORDBREAKS == *:* ]]; then
        kept=${current%"${current##*[@:=]}"}
    fi
    COMPREPLY=($(
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$index" \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE=false \
        {variable}=bash \
        {program} -- "${words[@]}" 2>/dev/null
    )) || COMPREPLY=()
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:@] ]] || compopt +o nospace 2>/dev/null
}
complete -o nospace -o default -o nosort -F _tine_complete tine 2>/dev/null \
    || complete -o nospace -o default -F _tine_complete tine
"#;
