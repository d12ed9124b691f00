//! The format of the `--json` output, as a JSON schema for each command.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use transcript::SessionView;

use super::root;

fn schema_of<T: JsonSchema>() -> String {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema");
    text.push('\n');
    text
}

/// One session that was asked for, or all open ones.
#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum StatusOutput {
    One(Box<engine::Status>),
    Open(Vec<engine::Status>),
}

#[test]
fn every_json_output_has_a_schema() {
    let schemas = [
        ("adopt", schema_of::<Vec<engine::AdoptedView<'static>>>()),
        ("blame", schema_of::<engine::Blame>()),
        ("clone", schema_of::<engine::ForkView>()),
        ("diff", schema_of::<engine::DiffView>()),
        ("doctor", schema_of::<engine::Report>()),
        ("events", schema_of::<engine::SessionEvent>()),
        ("export", schema_of::<engine::Exported>()),
        ("focus", schema_of::<engine::TargetView>()),
        ("fork", schema_of::<engine::ForkView>()),
        ("index", schema_of::<engine::IndexView<'static>>()),
        ("info", schema_of::<engine::Info>()),
        ("interrupt", schema_of::<SessionView>()),
        ("list", schema_of::<Vec<SessionView>>()),
        ("log", schema_of::<Vec<engine::LogEntry>>()),
        ("read", schema_of::<engine::ReadView>()),
        ("restore", schema_of::<engine::RestoreView>()),
        ("resume", schema_of::<engine::ResumeView>()),
        ("search", schema_of::<engine::SearchView>()),
        ("send", schema_of::<engine::SentView>()),
        ("setup", schema_of::<engine::SetupView<'static>>()),
        ("show", schema_of::<transcript::render::ShowView>()),
        ("smart-fork", schema_of::<engine::SuggestionsView>()),
        ("snapshots", schema_of::<engine::SnapshotList>()),
        ("start", schema_of::<engine::StartView>()),
        ("status", schema_of::<StatusOutput>()),
        ("stop", schema_of::<Vec<engine::TargetView>>()),
        ("tree", schema_of::<Vec<engine::Node>>()),
        ("wait", schema_of::<Vec<SessionView>>()),
    ];
    let names: Vec<String> = schemas.iter().map(|(command, _)| format!("{command}.json")).collect();
    for ((_, schema), name) in schemas.iter().zip(&names) {
        testkit::golden::assert_file(&format!("docs/schemas/{name}"), schema);
    }
    testkit::golden::assert_folder("docs/schemas", &names);
    let printed: Vec<String> = root()
        .get_subcommands()
        .filter(|command| command.get_arguments().any(|argument| argument.get_long() == Some("json")))
        .map(|command| command.get_name().to_owned())
        .collect();
    for command in &printed {
        assert!(schemas.iter().any(|(known, _)| known == command), "`{command} --json` has no schema");
    }
}
