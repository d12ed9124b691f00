//! The file of vectors: what is found in it, and what happens to it when things go wrong.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use meaning::{DIMENSIONS, Error, Key, Vector, VectorFile, VectorWriter};

const HEADER: usize = 64;
const RECORD: usize = DIMENSIONS + 24;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("vectors")
    }

    /// A file with vectors 0 to `count`.
    fn with(count: u64) -> Folder {
        let folder = Folder::new();
        append(&mut when_free(|| VectorWriter::open(&folder.path())).expect("a writer"), 0..count);
        folder
    }
}

fn key(document: u64) -> Key {
    Key { document, part: (document % 7) as u32 }
}

/// Some vector, the same for the same number.
fn vector(number: u64) -> Vector {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut values = [0.0; DIMENSIONS];
    for value in &mut values {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *value = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    }
    Vector::new(&values)
}

fn append(writer: &mut VectorWriter, numbers: std::ops::Range<u64>) {
    writer.append(numbers.map(|number| (key(number), vector(number)))).expect("appended");
}

fn documents(path: &Path) -> Vec<u64> {
    VectorFile::open(path).expect("a file").keys().map(|key| key.document).collect()
}

#[test]
fn what_is_appended_is_there() {
    let folder = Folder::new();
    let path = folder.path();
    let Err(Error::Io { source, .. }) = VectorFile::open(&path) else { panic!("no file") };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
    let mut writer = when_free(|| VectorWriter::open(&path)).expect("a writer");
    assert!(writer.is_empty() && VectorFile::open(&path).expect("a file").is_empty());
    let before = VectorFile::open(&path).expect("a file");
    append(&mut writer, 0..0);
    append(&mut writer, 0..3);
    append(&mut writer, 3..5000);
    drop(writer);
    let mut writer = when_free(|| VectorWriter::open(&path)).expect("a writer again");
    append(&mut writer, 5000..5001);
    assert_eq!(writer.len(), 5001);
    let file = VectorFile::open(&path).expect("a file");
    assert!(before.is_empty());
    assert_eq!((file.len(), file.lost()), (5001, 0));
    file.verify().expect("all intact");
    for (number, (found, stored)) in (0..).zip(file.vectors()) {
        assert_eq!((found, stored), (key(number), vector(number)));
    }
}

#[test]
fn the_nearest_are_found_in_order() {
    let folder = Folder::with(2000);
    let file = VectorFile::open(&folder.path()).expect("a file");
    let query = vector(77);
    let mut expected: Vec<(f32, u64)> = (0..2000).map(|number| (query.cosine(&vector(number)), number)).collect();
    expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for count in [0, 1, 10, 1999, 2000, 3000] {
        let found = file.nearest(&query, count, |_| true);
        assert_eq!(found.damaged, 0);
        let found: Vec<u64> = found.hits.iter().map(|hit| hit.key.document).collect();
        let expected: Vec<u64> = expected.iter().take(count).map(|(_, number)| *number).collect();
        assert_eq!(found, expected, "{count}");
    }
    let best = file.nearest(&query, 1, |_| true).hits[0];
    assert_eq!(best.key, key(77));
    assert!((best.score - 1.0).abs() < 1e-3);
    let odd = file.nearest(&query, 5, |key| key.document % 2 == 1 && key.document != 77);
    assert_eq!(odd.hits.len(), 5);
    assert!(odd.hits.iter().all(|hit| hit.key.document % 2 == 1 && hit.key.document != 77));
    // A text that says nothing is like no other.
    assert!(file.nearest(&Vector::NOTHING, 3, |_| true).hits.iter().all(|hit| hit.score == 0.0));
}

#[test]
fn equals_are_in_the_order_of_their_keys() {
    let folder = Folder::new();
    let mut writer = when_free(|| VectorWriter::open(&folder.path())).expect("a writer");
    writer.append([9, 3, 7, 1, 5].map(|number| (key(number), vector(0)))).expect("appended");
    let found = VectorFile::open(&folder.path()).expect("a file").nearest(&vector(0), 3, |_| true);
    assert_eq!(found.hits.iter().map(|hit| hit.key.document).collect::<Vec<_>>(), [1, 3, 5]);
}

#[test]
fn only_the_owner_can_read_it() {
    let folder = Folder::with(1);
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path()), 0o600);
    drop(when_free(|| VectorWriter::create_or_replace(&folder.path())).expect("a writer"));
    assert_eq!(mode(&folder.path()), 0o600);
}

#[test]
fn one_writer_at_a_time() {
    let folder = Folder::with(3);
    let writer = when_free(|| VectorWriter::open(&folder.path())).expect("a writer");
    assert!(matches!(VectorWriter::open(&folder.path()), Err(Error::Busy(_))));
    assert!(matches!(VectorWriter::create_or_replace(&folder.path()), Err(Error::Busy(_))));
    assert_eq!(documents(&folder.path()), [0, 1, 2]);
    drop(writer);
    when_free(|| VectorWriter::open(&folder.path())).expect("free again");
}

/// A process that another test starts has everything open for a moment that is open here, locks included.
fn when_free<T>(open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match open() {
            Err(Error::Busy(_)) if begun.elapsed() < Duration::from_secs(10) => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

#[test]
fn a_file_that_is_cut_off_gives_what_is_left_and_says_so() {
    let whole = fs::read(Folder::with(4).path()).expect("bytes");
    let folder = Folder::new();
    for length in 1..whole.len() {
        fs::write(folder.path(), &whole[..length]).expect("written");
        match VectorFile::open(&folder.path()) {
            Ok(file) => {
                let left = (length - HEADER) / RECORD;
                assert_eq!((file.len(), file.lost()), (left, (4 - left) as u64));
                assert!(file.verify().is_err_and(|error| error.calls_for_rebuild()));
                assert_eq!(file.nearest(&vector(0), 9, |_| true).hits.len(), left);
            }
            Err(error) => assert!(length < HEADER && error.calls_for_rebuild(), "{length}: {error}"),
        }
        let refused = when_free(|| VectorWriter::open(&folder.path()));
        assert!(refused.is_err_and(|error| error.calls_for_rebuild()), "{length}");
    }
    let mut writer = when_free(|| VectorWriter::create_or_replace(&folder.path())).expect("begun anew");
    append(&mut writer, 8..9);
    assert_eq!(documents(&folder.path()), [8]);
}

#[test]
fn a_changed_byte_is_noticed_or_does_not_matter() {
    let whole = fs::read(Folder::with(3).path()).expect("bytes");
    let folder = Folder::new();
    for at in 0..whole.len() {
        for bit in [0x01, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            fs::write(folder.path(), &bytes).expect("written");
            let opened = VectorFile::open(&folder.path());
            if at >= HEADER {
                let file = opened.expect("the header is right");
                assert!(file.verify().is_err(), "byte {at}");
                let found = file.nearest(&vector(0), 3, |_| true);
                let changed = ((at - HEADER) / RECORD) as u64;
                assert!(found.hits.iter().all(|hit| hit.key.document != changed), "byte {at}");
            } else {
                // A wrong slot is made up for by the other one, which may count less; what it counts is right.
                match opened {
                    Ok(file) => file.verify().expect("the records are as they were"),
                    Err(error) => assert!(error.calls_for_rebuild(), "byte {at}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a_damaged_vector_is_left_out_and_counted() {
    let folder = Folder::with(100);
    let mut bytes = fs::read(folder.path()).expect("bytes");
    bytes[HEADER + 5 * RECORD] ^= 1;
    fs::write(folder.path(), &bytes).expect("written");
    let found = VectorFile::open(&folder.path()).expect("a file").nearest(&vector(5), 100, |_| true);
    assert_eq!((found.hits.len(), found.damaged), (99, 1));
}

#[test]
fn other_versions_and_other_files_are_not_read() {
    let folder = Folder::with(1);
    let whole = fs::read(folder.path()).expect("bytes");
    // Version and model.
    for at in [8, 16] {
        let mut bytes = whole.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        fs::write(folder.path(), &bytes).expect("written");
        assert!(matches!(VectorFile::open(&folder.path()), Err(Error::Foreign(_))), "byte {at}");
        assert!(matches!(when_free(|| VectorWriter::open(&folder.path())), Err(Error::Foreign(_))), "byte {at}");
    }
    fs::write(folder.path(), "SQLite format 3\0".repeat(100)).expect("written");
    let error = VectorFile::open(&folder.path()).expect_err("not vectors");
    assert!(error.calls_for_rebuild(), "{error}");
}

#[test]
fn bytes_behind_the_end_are_written_over() {
    let folder = Folder::with(2);
    let mut bytes = fs::read(folder.path()).expect("bytes");
    bytes.extend([0xab; 3 * RECORD + 17]);
    fs::write(folder.path(), &bytes).expect("what a killed writer leaves");
    assert_eq!(documents(&folder.path()), [0, 1]);
    append(&mut when_free(|| VectorWriter::open(&folder.path())).expect("a writer"), 2..4);
    assert_eq!(documents(&folder.path()), [0, 1, 2, 3]);
    VectorFile::open(&folder.path()).expect("a file").verify().expect("all intact");
}

#[test]
fn an_empty_file_is_one_without_vectors() {
    let folder = Folder::new();
    fs::write(folder.path(), "").expect("written");
    assert!(VectorFile::open(&folder.path()).expect("a file").is_empty());
    append(&mut when_free(|| VectorWriter::open(&folder.path())).expect("a writer"), 0..1);
    assert_eq!(documents(&folder.path()), [0]);
}

#[test]
fn what_is_not_wanted_goes_and_readers_keep_what_they_have() {
    let folder = Folder::with(10);
    let reader = VectorFile::open(&folder.path()).expect("a file");
    let mut writer = when_free(|| VectorWriter::open(&folder.path())).expect("a writer");
    assert_eq!(writer.retain(|_| true).expect("nothing to do"), 0);
    assert_eq!(writer.retain(|key| key.document % 3 == 0).expect("retained"), 6);
    assert_eq!((writer.len(), documents(&folder.path())), (4, vec![0, 3, 6, 9]));
    assert!(matches!(VectorWriter::open(&folder.path()), Err(Error::Busy(_))));
    append(&mut writer, 20..21);
    assert_eq!(documents(&folder.path()), [0, 3, 6, 9, 20]);
    assert_eq!(reader.keys().count(), 10);
    reader.verify().expect("as it was");
    assert_eq!(fs::read_dir(folder.0.path()).expect("a folder").count(), 1, "nothing is left beside it");
}

#[test]
fn a_leftover_of_a_replacement_is_no_hindrance() {
    let folder = Folder::with(3);
    fs::write(folder.0.path().join("vectors.new"), "left by a killed writer").expect("written");
    let mut writer = when_free(|| VectorWriter::open(&folder.path())).expect("a writer");
    assert_eq!(writer.retain(|key| key.document == 1).expect("retained"), 2);
    assert_eq!(documents(&folder.path()), [1]);
}

#[test]
fn a_full_disk_changes_nothing() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let folder = Folder::new();
    std::os::unix::fs::symlink(full, folder.path()).expect("a link");
    let error = when_free(|| VectorWriter::open(&folder.path())).expect_err("no space");
    assert!(matches!(error, Error::Io { verb: "write", .. }), "{error}");
}

const CHILD: &str = "TINE_MEANING_TEST_WRITER";

/// Not a test: the process that others start. Appends as soon as it may, 50 vectors at a time, 20 times or without end.
#[test]
fn the_process_that_writes() {
    let Some(told) = std::env::var_os(CHILD) else { return };
    let told = told.into_string().expect("text");
    let (first, path) = told.split_once(' ').expect("a number and a path");
    let (times, first) = match first.strip_prefix("endless") {
        Some(_) => (u64::MAX, 0),
        None => (20, first.parse::<u64>().expect("a number")),
    };
    let mut done = 0;
    while done < times {
        match VectorWriter::open(Path::new(path)) {
            Ok(mut writer) => {
                let start = first + 50 * done;
                append(&mut writer, start..start + 50);
                done += 1;
            }
            Err(Error::Busy(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn writer_process(first: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the test"))
        .args(["--exact", "the_process_that_writes"])
        .env(CHILD, format!("{first} {}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

#[test]
fn several_processes_lose_nothing() {
    let folder = Folder::new();
    let mut writers = [0, 10_000, 20_000].map(|first| writer_process(&first.to_string(), &folder.path()));
    let mut seen = 0;
    while writers.iter_mut().any(|writer| writer.try_wait().expect("a state").is_none()) {
        if let Ok(file) = VectorFile::open(&folder.path()) {
            file.verify().expect("whatever counts is whole");
            assert!(file.len() >= seen && file.len() % 50 == 0);
            seen = file.len();
        }
    }
    assert!(writers.iter_mut().all(|writer| writer.wait().expect("its end").success()));
    let mut found = documents(&folder.path());
    found.sort_unstable();
    let expected: Vec<u64> = [0, 10_000, 20_000].into_iter().flat_map(|first| first..first + 1000).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_killed_writer_leaves_a_whole_file_and_no_lock() {
    let folder = Folder::new();
    let mut before = 0;
    for round in 0..10u64 {
        let mut writer = writer_process("endless", &folder.path());
        let begun = Instant::now();
        while fs::metadata(folder.path()).map_or(0, |file| file.size()) <= before {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
            std::thread::yield_now();
        }
        for _ in 0..round * 20_000 {
            std::hint::spin_loop();
        }
        writer.kill().expect("killed");
        writer.wait().expect("its end");
        let file = VectorFile::open(&folder.path()).expect("readable");
        file.verify().expect("whole");
        assert_eq!((file.len() % 50, file.lost()), (0, 0));
        when_free(|| VectorWriter::open(&folder.path())).expect("no lock is left");
        before = fs::metadata(folder.path()).expect("a file").size();
    }
}
