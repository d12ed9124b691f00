//! Asking the system about processes, through `/proc` where there is one.

use std::fs;
use std::path::Path;

/// Whether `pid` runs and, where `started` is given, is still the process that began then.
///
/// `started` is field 22 of `/proc/<pid>/stat`: a number that is given again to another process has another start.
pub(crate) fn is_running(proc: &Path, pid: u32, started: Option<&str>) -> bool {
    let Ok(stat) = fs::read_to_string(proc.join(pid.to_string()).join("stat")) else {
        return false;
    };
    // The program's name stands in parentheses and may hold anything, so fields are counted behind the last one.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_ascii_whitespace();
    let ended = matches!(fields.next(), Some("Z" | "X"));
    let begun = fields.nth(18);
    !ended && started.is_none_or(|started| begun == Some(started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_given_again_is_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let check = |stat: &str, started: Option<&str>, expected: bool| {
            fs::create_dir_all(folder.path().join("7")).unwrap();
            fs::write(folder.path().join("7/stat"), stat).unwrap();
            assert_eq!(is_running(folder.path(), 7, started), expected, "{stat}");
        };
        let stat = "7 (a) b) (x) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        check(stat, None, true);
        check(stat, Some("4242"), true);
        check(stat, Some("4243"), false);
        check(&stat.replace(") S", ") Z"), None, false);
        check("nonsense", None, false);
        assert!(!is_running(folder.path(), 8, None));
    }
}
