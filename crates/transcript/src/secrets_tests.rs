use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;

use super::*;

#[test]
fn whatever_has_one_of_the_shapes_has_one_of_its_signs() {
    let mut runner = TestRunner::deterministic();
    for (number, Shape { expression: shape, .. }) in LOOKS.iter().chain(&NAMES).enumerate() {
        let secrets = string_regex(&shape.replace(r"\b", "").replace("*?", "*")).unwrap();
        for _ in 0..100 {
            let secret = secrets.new_tree(&mut runner).unwrap().current();
            assert!(expression(number).is_match(&secret), "{shape}: {secret:?}");
            assert!(possible_shapes(&secret) & 1 << number != 0, "{shape}: {secret:?}");
        }
    }
    for harmless in ["the secret of the token is the password", "https://example.invalid/a@b", "keys: api, key"] {
        assert_eq!(possible_shapes(harmless), 0, "{harmless}");
    }
}

#[test]
fn secrets_go_and_everything_else_stays() {
    // Put together here, so that no scanner takes this file for a leak.
    let key = |start: &str, length: usize| format!("{start}{}", "a1B2c3D4e5F6g7H8".repeat(5)[..length].to_owned());
    let gone = [
        key("sk-ant-api03-", 40),
        key("sk-proj-", 40),
        key("ghp_", 36),
        key("github_pat_", 60),
        format!("AKIA{}", "ABCDEFGH23456789"),
        key("xoxb-", 30),
        key("AIza", 35),
        key("glpat-", 20),
        key("npm_", 36),
        key("hf_", 34),
        key("gsk_", 52),
        key("xai-", 64),
        key("lin_api_", 40),
        key("figd_", 40),
        key("dp.pt.", 43),
        key("whsec_", 32),
        format!("dapi{}", "0123456789abcdef".repeat(2)),
        key("ntn_", 46),
        format!("{}-us12", "0123456789abcdef".repeat(2)),
        key("glsa_", 40),
        key("tskey-auth-", 40),
        format!("{}.atlasv1.{}", key("", 14), key("", 60)),
        format!("abc8Q~{}", key("", 34)),
        format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 20), key("", 30)),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", key("", 60)),
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\\n{}", key("", 60)),
    ];
    for secret in &gone {
        let text = format!("before {secret}");
        let (masked, count) = mask(&text);
        assert_eq!((masked.as_ref(), count), ("before [secret]", 1), "{secret}");
    }
    let named = |text: &str, expected: &str| assert_eq!(mask(text).0, expected);
    named("Authorization: Bearer abcdef123456789", "Authorization: Bearer [secret]");
    named(r#"{"password": "hunter2hunter2"}"#, r#"{"password": "[secret]"}"#);
    named("export DB_PASSWORD=hunter2hunter2 # it", "export DB_PASSWORD=[secret] # it");
    named("AWS_SECRET_ACCESS_KEY=abc/123+xyzabc/123", "AWS_SECRET_ACCESS_KEY=[secret]");
    named("postgres://app:s3cretpw@db/x", "postgres://app:[secret]@db/x");
    named("secret: password: hunter2hunter2", "secret: password: [secret]");
    named("the secret = aws_secret_access_key = abc/123+xyz", "the secret = aws_secret_access_key = [secret]");
    named(r#"{"token":"abcdefabcdef12342"}"#, r#"{"token":"[secret]"}"#);
    named("GITHUB_TOKEN=abcdefabcdef12343 make", "GITHUB_TOKEN=[secret] make");
    named("login --password hunter2hunter2 --now", "login --password [secret] --now");
    named("mysql -h db -u app -phunter2hunter2 shop", "mysql -h db -u app -p[secret] shop");
    named("mysqldump -phunter2hunter2 shop", "mysqldump -p[secret] shop");
    named("sshpass -p 'hunter2hunter2' ssh host", "sshpass -p '[secret]' ssh host");
    named("machine h login me\n\tpassword hunter2hunter2", "machine h login me\n\tpassword [secret]");
    named("curl -u app:hunter2hunter2 url", "curl -u app:[secret] url");
    named("postgres://app:s3cretpw@db/x and password=hunter22", "postgres://app:[secret]@db/x and password=[secret]");
    let several = format!("a token={} b {} c {} d", key("", 20), key("hf_", 34), key("ghp_", 36));
    named(&several, "a token=[secret] b [secret] c [secret] d");
    named("SECRET_KEY_BASE=0123abcd0123abcd", "SECRET_KEY_BASE=[secret]");
    named("PRIVATE_KEY=0x0123abcd0123abcd", "PRIVATE_KEY=[secret]");
    named("passphrase: hunter2hunter2", "passphrase: [secret]");
    named("the password is hunter2hunter2", "the password is [secret]");
    named("pwd=hunter2hunter2;", "pwd=[secret];");
    named("Cookie: session=0123abcd0123abcd; a=b", "Cookie: session=[secret]; a=b");
    named(r#"{"auth":"0123abcd0123abcd0123"}"#, r#"{"auth":"[secret]"}"#);
    let signature = key("", 40);
    named(&format!("https://a/b?sv=1&sig={signature}"), "https://a/b?sv=1&sig=[secret]");
    named(&format!("https://discord.com/api/webhooks/123/{}", key("", 60)), "https://[secret]");
    let token = key("ghp_", 36);
    for before in ["\n", r"a\n", r"a\t", r"\\n", "KEY_", "a%3D", "\x1b[01;31m\x1b[K", r"\u001b[1m", "é"] {
        let (text, expected) = (format!("{before}{token}"), format!("{before}[secret]"));
        named(&text, &expected);
    }
    named(&format!("a{token}"), &format!("a{token}"));
    // `grep --color` of a part of it.
    let (start, end) = token.split_at(4);
    named(&format!("in \x1b[01;31m\x1b[K{start}\x1b[m\x1b[K{end}"), "in [secret]");
    for prefix in ["    12→", "12\t", "keys/a.pem:", "| "] {
        let body = key("", 60);
        let cut_off = format!("x -----BEGIN PRIVATE KEY-----\n{prefix}{body}\n{prefix}{body}\nand then");
        named(&cut_off, "x [secret]\nand then");
    }
    let pgp = format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{}\nand then", key("", 60));
    named(&pgp, "[secret]\nand then");
    let cut_off = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\nand what else was said", key("", 60));
    named(&cut_off, "[secret]\nand what else was said");
    for text in [
        "let token = next_token_2(input);",
        "token: t1234567",
        "git push -u origin main:main",
        "docker run -u 1000:1000 --token-file x",
        "let password = read_password();",
        "PWD=/home/me/project2",
        "test read::password::of_user_18337 ... ok",
        "use crate::token::Kind2AndSomeMoreOfIt3;",
        "a task-management-system-for-2027-and-on",
        "the password is in the file2",
        "cookie: the-name-of-1 cookie",
        "mysql -p shop2 && mkdir -p a1b2c3d4",
        "the machine has no login; its password, a1b2c3d4",
        "password: $PASSWORD1",
        "api_key = config.api_key",
        "https://example.invalid:8080/a@b",
        "sk-short",
        "the token is in the cookie",
        "",
        "eyJhbGciOi",
    ] {
        assert_eq!(mask(text), (Cow::Borrowed(text), 0));
    }
}

#[test]
fn quoted_passwords_with_blanks_and_keys_of_five_services_were_shown() {
    let check = |text: &str, expected: &str| assert_eq!(mask(text).0, expected);
    for (before, after) in [("password = \"", "\""), ("DB_PASSWORD='", "'"), (r#"{"passphrase": ""#, r#""}"#)] {
        for secret in ["correct horse battery staple", "open sesame 7", "hunter2 hunter2 x"] {
            check(&format!("{before}{secret}{after} x"), &format!("{before}[secret]{after} x"));
        }
    }
    let escaped = r#"{\"password\": \"correct horse battery staple\"}"#;
    check(escaped, &escaped.replace("correct horse battery staple", MARK));
    // What isn't a password as a whole may begin with one.
    check("password = 'hunter2hunter2 is the one'", "password = '[secret] is the one'");
    for label in [
        "password: 'Enter your password'",
        r#""password": "must have at least 8 characters""#,
        r#"password = "The passwords don't match""#,
        r#"passphrase: "{count} words are missing""#,
        r#"password = "Forgot 2 times?""#,
    ] {
        check(label, label);
    }
    let (body, mac) = ("AAAAIGh1bnRlcjJodW50ZXIyaHVudGVyMmh1", "0123456789abcdef".repeat(4));
    let putty = format!("Public-Lines: 1\nAAAAB3Nza\nPrivate-Lines: 2\n{body}\nAAAA\nPrivate-MAC: {mac}\nand then");
    check(&putty, "Public-Lines: 1\nAAAAB3Nza\n[secret]\nand then");
    check(&format!("Private-Lines: 2\n{body}\n{body}\nand then"), "[secret]\nand then");
    let key = "a1B2c3D4e5F6g7H8".repeat(5);
    let hex = "0123456789abcdef".repeat(4);
    check(&format!("FlyV1 fm2_{key},fm2_{key} x"), "FlyV1 [secret],[secret] x");
    check(&format!("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{} x", &key[..27]), "[secret] x");
    check(&format!("(MTAwMDAwMDAwMDAwMDAwMDAwMA.Gh1jKl.{})", &key[..38]), "([secret])");
    check(&format!("patA1b2C3d4E5f6G7.{hex} x"), "[secret] x");
    check(&format!("hash $2b$12${} x", &key[..53]), "hash [secret] x");
    for text in ["path/to/some/file.rs", "patternsofthings.0123", "$2a$ is a prefix", "MTA.CONTENT.INDEX", "fm2_short"]
    {
        check(text, text);
    }
}

#[test]
fn a_value_is_secret_by_what_it_is_called() {
    let check = |value: Value, expected: Value, count: usize| {
        let mut kind = BlockKind::Call { id: String::new(), name: "http".into(), input: value.clone() };
        assert_eq!(mask_block(&mut kind), count, "{value}");
        assert_eq!(kind, BlockKind::Call { id: String::new(), name: "http".into(), input: expected });
    };
    let plain = serde_json::json!({"command": "ls", "lines": [1, "two"]});
    check(plain.clone(), plain, 0);
    check(
        serde_json::json!({"a": {"password": "hunter2hunter2"}, "b": "x\ny"}),
        serde_json::json!({"a": {"password": "[secret]"}, "b": "x\ny"}),
        1,
    );
}
