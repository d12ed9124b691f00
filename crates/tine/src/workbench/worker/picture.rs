//! Pictures for prompts.

use std::path::Path;

/// The size limit for pictures in prompts.
const LARGEST_PICTURE: u64 = 5 << 20;

/// Reads a picture for a prompt.
pub(super) fn read_picture(path: &Path) -> Result<engine::chat::Image, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let size = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
    if size > LARGEST_PICTURE {
        return Err(failed(&"the picture is larger than 5 MB"));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let media_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, ..] => "image/jpeg",
        [b'G', b'I', b'F', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(failed(&"it is not a picture")),
    };
    Ok(engine::chat::Image { media_type: media_type.to_owned(), base64: base64(&bytes) })
}

/// Bytes in base64, as agents and terminals expect.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let filled = digit <= group.len();
            let place = (bits >> (18 - 6 * digit)) & 63;
            text.push(if filled { char::from(DIGITS[place as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_has_its_usual_form() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
