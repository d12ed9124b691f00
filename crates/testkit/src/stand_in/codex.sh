#!/bin/bash
# A stand-in for Codex 0.140 without a model: it forks by `app-server`, answers by `exec`, sits in a pane by `resume`, and
# runs the hooks of the tine that STAND_IN_HOOKS names. STAND_IN_FAILS makes it fail once it has forked.
set -eu

field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
escaped() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'; }
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
# A version 7 UUID, which begins with the time.
new_id() { local ms; ms=$(printf '%012x' "$(date +%s%3N)"); printf '%s-%s-7%03x-8%03x-%012x' "${ms:0:8}" "${ms:8}" $((RANDOM % 4096)) $((RANDOM % 4096)) $((RANDOM * RANDOM)); }
file_of() { find "$CODEX_HOME/sessions" -name "rollout-*-$1.jsonl"; }
new_file() { local day; day=$(date -u +%Y/%m/%d); mkdir -p "$CODEX_HOME/sessions/$day"; echo "$CODEX_HOME/sessions/$day/rollout-$(date -u +%Y-%m-%dT%H-%M-%S)-$1.jsonl"; }

hook() { # event, id, file, source
    if [ -z "${STAND_IN_HOOKS:-}" ]; then return; fi
    printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","source":"%s"}' "$2" "$3" "$PWD" "$4" |
        "$STAND_IN_HOOKS" hook "$1" --agent codex
}

meta() { # id, parent
    printf '{"timestamp":"%s","type":"session_meta","payload":{"id":"%s","session_id":"%s",%s"timestamp":"%s","cwd":"%s","originator":"tine","cli_version":"0.140.0","source":"vscode","model_provider":"mock"}}\n' \
        "$(now)" "$1" "$1" "${2:+\"forked_from_id\":\"$2\",}" "$(now)" "$PWD"
}

turn() { # escaped prompt
    local id; id=$(new_id)
    printf '{"timestamp":"%s","type":"event_msg","payload":{"type":"task_started","turn_id":"%s"}}\n' "$(now)" "$id"
    printf '{"timestamp":"%s","type":"turn_context","payload":{"turn_id":"%s","cwd":"%s","model":"mock-model"}}\n' "$(now)" "$id" "$PWD"
    printf '{"timestamp":"%s","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%s"}]}}\n' "$(now)" "$1"
    printf '{"timestamp":"%s","type":"event_msg","payload":{"type":"user_message","message":"%s"}}\n' "$(now)" "$1"
    printf '{"timestamp":"%s","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Ready."}]}}\n' "$(now)"
    printf '{"timestamp":"%s","type":"event_msg","payload":{"type":"agent_message","message":"Ready."}}\n' "$(now)"
    printf '{"timestamp":"%s","type":"event_msg","payload":{"type":"task_complete","turn_id":"%s","last_agent_message":"Ready."}}\n' "$(now)" "$id"
}

case "${1:-}" in
--version) echo "codex-cli 0.140.0" ;;
app-server)
    while read -r line; do
        number=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
        case "$line" in
        *'"thread/fork"'*)
            source=$(field threadId <<<"$line")
            cd "$(field cwd <<<"$line")"
            id=$(new_id) file=$(new_file "$id")
            { meta "$id" "$source"; cat "$(file_of "$source")"; } >"$file"
            hook session-start "$id" "$file" fork
            if [ -n "${STAND_IN_FAILS:-}" ]; then
                printf '{"id":%s,"error":{"message":"it broke"}}\n' "$number"
            else
                printf '{"id":%s,"result":{"thread":{"id":"%s","path":"%s"}}}\n' "$number" "$id" "$file"
            fi
            ;;
        *'"thread/start"'* | *'"thread/resume"'*)
            start=startup thread=$(field threadId <<<"$line")
            cd "$(field cwd <<<"$line")"
            if [ -n "$thread" ]; then
                start=resume file=$(file_of "$thread")
            else
                thread=$(new_id) file=$(new_file "$thread")
            fi
            printf '{"id":%s,"result":{"thread":{"id":"%s","path":"%s"},"model":"mock-model"}}\n' "$number" "$thread" "$file"
            ;;
        *'"turn/start"'*)
            # The text is escaped already.
            prompt=$(sed -e 's/.*"type":"text","text":"//' -e 's/","text_elements".*//' <<<"$line")
            hook session-start "$thread" "$file" "$start"
            hook user-prompt-submit "$thread" "$file" ""
            printf '{"id":%s,"result":{"turn":{"id":"t"}}}\n{"method":"turn/started","params":{"turn":{"id":"t"}}}\n' "$number"
            # The file appears with its first turn, and Codex keeps it open.
            is_new=$([ -e "$file" ] || echo yes)
            exec 3>>"$file"
            if [ "$is_new" = yes ]; then meta "$thread" "" >&3; fi
            turn "$prompt" >&3
            hook stop "$thread" "$file" ""
            printf '{"method":"item/completed","params":{"item":{"type":"agentMessage","text":"Ready."}}}\n'
            printf '{"method":"turn/completed","params":{"turn":{"id":"t","status":"completed"}}}\n'
            ;;
        *'"initialized"'*) ;;
        *) printf '{"id":%s,"result":{}}\n' "$number" ;;
        esac
    done
    ;;
exec)
    prompt=$(escaped)
    id= start=startup words=("$@")
    for index in "${!words[@]}"; do
        if [ "${words[index]}" = resume ]; then id=${words[index + 1]} start=resume; fi
    done
    if [ -n "$id" ]; then
        file=$(file_of "$id")
    else
        id=$(new_id) file=$(new_file "$id")
        meta "$id" "" >"$file"
    fi
    hook session-start "$id" "$file" "$start"
    hook user-prompt-submit "$id" "$file" ""
    turn "$prompt" >>"$file"
    hook stop "$id" "$file" ""
    printf '{"type":"thread.started","thread_id":"%s"}\n{"type":"item.completed","item":{"type":"agent_message","text":"Ready."}}\n' "$id"
    ;;
resume)
    file=$(file_of "$2")
    exec 3>>"$file"
    hook session-start "$2" "$file" resume
    printf '› Ask Codex to do anything\r\n  mock-model · %s\r\n' "$PWD"
    cat >/dev/null
    ;;
*) exit 2 ;;
esac
