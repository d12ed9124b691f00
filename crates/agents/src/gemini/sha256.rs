//! The name that Gemini CLI gives to a directory in its session files: its path's SHA-256.

use sha2::{Digest, Sha256};

/// The hash of some bytes, in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let check = |text: &str, expected: &str| assert_eq!(hex(text.as_bytes()), expected, "{text}");
        check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        check(
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        );
        // Its padding has a block of its own.
        check(&"a".repeat(63), "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
        // As Gemini CLI 0.61.0 wrote it for this directory.
        check("/tmp/gemini/proj", "a30cdefed7552c6e842194700f273232a55414850eb8f627a727842fd22c848f");
    }
}
