//! A seeded fork holds the transcript of its source, and the source is what is found.

use jiff::tz::TimeZone;
use testkit::build::ClaudeSession;
use transcript::Agent;

use crate::registry::SeedNote;
use crate::search::query::{Engine, Limits, Now, Query};
use crate::search::request::{EMBEDDING, SearchRequest};
use crate::search::show::Answer;
use crate::sessions::catalog::Quiet;
use crate::test_world::World;

const SOURCE: &str = "11111111-1111-4111-8111-111111111111";
const SEEDED: &str = "22222222-2222-4222-8222-222222222222";

/// A source with two turns, of which a seeded fork holds the first one.
fn world() -> World {
    let world = World::new();
    ClaudeSession::new(SOURCE)
        .cwd(&world.repository)
        .seed(1)
        .turn(|turn| turn.prompt("Orders need a CSV export, please.").text("It belongs beside the list route."))
        .turn(|turn| turn.prompt("Which marmalade is best?").text("The bitter one."))
        .write(&world.claude_home());
    let seed = "[TINE_FORK_SEED]\nThis message hands over an earlier conversation.\n\n<<<f00d begin transcript>>>\n\
                <<<f00d user, turn 1>>>\nOrders need a CSV export, please.\n\
                <<<f00d assistant, turn 1>>>\nIt belongs beside the list route.\n<<<f00d end transcript>>>\n";
    ClaudeSession::new(SEEDED)
        .cwd(world.repository.join("elsewhere"))
        .seed(2)
        .title("CSV export of orders")
        .turn(|turn| turn.prompt(seed).thinking("The CSV export of orders was handed over.").text("Ready."))
        .turn(|turn| turn.prompt("Go on with pomelos.").text("Done."))
        .write(&world.claude_home());
    let (parent, hash) = (SOURCE.to_owned(), "x".to_owned());
    let note = SeedNote { parent_agent: Agent::Claude, parent, turn: 1, hash, tokens: 1, window: None, hidden: true };
    world.tine().registry().record_seed(SEEDED, &note);
    world
}

fn search(world: &World, engine: Engine, words: &str, limits: &Limits) -> Answer {
    let tine = world.tine();
    let now = Now { time: tine.context().clock.now(), zone: TimeZone::UTC };
    let mut query = Query::parse(words, limits, &now).expect("a query");
    query.engine = engine;
    let asking =
        SearchRequest { query: &query, limits, limit: 10, embedding: EMBEDDING, progress: &Quiet, indexing: &Quiet };
    tine.search(asking).expect("an answer")
}

/// The ids of what was found.
fn ids(answer: &Answer) -> Vec<&str> {
    answer.results.iter().map(|found| found.session.view.id.as_str()).collect()
}

#[test]
fn a_seeded_fork_does_not_outrank_its_source() {
    let world = world();
    for engine in [Engine::Words, Engine::Auto] {
        for words in ["CSV export of orders", "orders", "beside the list route", "\"CSV export\""] {
            let answer = search(&world, engine, words, &Limits::default());
            assert_eq!(ids(&answer)[0], SOURCE, "{words}: {answer:#?}");
            assert_eq!(answer.results[0].turn, 1, "{words}: {answer:#?}");
            assert_eq!(answer.results[0].forks, [&SEEDED[..8]], "{words}: {answer:#?}");
            let shown = |found: &crate::search::show::Found| found.snippet.text.clone();
            let raw: Vec<String> = answer.results.iter().map(shown).filter(|text| text.contains("<<<")).collect();
            assert!(raw.is_empty(), "{words}: {raw:?}");
        }
    }
}

#[test]
fn what_a_seeded_fork_says_itself_is_its_own() {
    let world = world();
    let answer = search(&world, Engine::Words, "pomelos", &Limits::default());
    assert_eq!((ids(&answer), answer.results[0].turn), (vec![SEEDED], 2));
    // What the source said later was not handed over.
    let answer = search(&world, Engine::Words, "marmalade", &Limits::default());
    assert_eq!((ids(&answer), answer.results[0].forks.len()), (vec![SOURCE], 0));
}

#[test]
fn a_seeded_fork_stands_for_its_source_where_only_it_is_asked_for() {
    let world = world();
    let limits = Limits { directory: Some(world.repository.join("elsewhere")), ..Limits::default() };
    std::fs::create_dir(world.repository.join("elsewhere")).expect("a directory");
    std::fs::create_dir(world.repository.join("elsewhere/.git")).expect("another project");
    for words in ["list route", "\"list route\""] {
        let answer = search(&world, Engine::Words, words, &limits);
        let found = answer.results.first().unwrap_or_else(|| panic!("{words}: {answer:#?}"));
        assert_eq!((ids(&answer), found.turn), (vec![SEEDED], 1), "{words}: {answer:#?}");
        assert_eq!(found.snippet.text, "It belongs beside the list route.", "{words}");
    }
    assert!(search(&world, Engine::Words, "marmalade", &limits).results.is_empty());
}
