//! Whether a question is in a language that the model was not taught.
//!
//! Its words consist of many pieces in the model's vocabulary; but so do names of programs and technologies (`pytorch
//! vram`), which the model understands to a degree. What distinguishes the two are small words that occur in every
//! sentence of the language and in no English one, and letters that English does not have.

/// A query is supported if its words have at most this many pieces on average, and unsupported if they have at least
/// that many.
const UNDERSTOOD: f32 = 1.2;
const FOREIGN: f32 = 1.6;

/// Small words of German, French, Spanish, Italian, Portuguese and Dutch.
const SMALL: &[&str] = &[
    "auf", "avec", "bei", "beim", "che", "dans", "das", "de", "del", "della", "dem", "den", "der", "des", "di", "du",
    "een", "ein", "eine", "einen", "el", "est", "et", "gli", "het", "ich", "il", "immer", "ist", "la", "las", "le",
    "les", "los", "mit", "mon", "muy", "nach", "nicht", "niet", "para", "pas", "por", "porque", "pour", "que", "qui",
    "sans", "sur", "uma", "una", "und", "une", "von", "voor", "weil", "wenn", "wie", "wir", "wird", "wurde", "zijn",
    "zu",
];

/// From 0, if the model supports the language of a query, to 1, if it does not.
pub(crate) fn language_mismatch(question: &str) -> f32 {
    if !is_marked(question) {
        return 0.0;
    }
    ((meaning::pieces_per_word(question) - UNDERSTOOD) / (FOREIGN - UNDERSTOOD)).clamp(0.0, 1.0)
}

fn is_marked(question: &str) -> bool {
    let mut words = question.split(|c: char| !c.is_alphabetic());
    question.chars().any(|c| c.is_alphabetic() && !c.is_ascii())
        || words.any(|word| SMALL.binary_search(&word.to_lowercase().as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_words_and_letters_tell_a_language_from_jargon() {
        assert!(SMALL.is_sorted());
        let check = |question: &str, is_foreign: bool| {
            assert_eq!(language_mismatch(question) > 0.5, is_foreign, "{question}: {}", language_mismatch(question));
        };
        check("why does the login page redirect", false);
        check("pytorch vram exhausted", false);
        check("openid sso spa", false);
        check("MIT license of the lib", false);
        check("Nach der Anmeldung lande ich immer wieder auf der Login Seite", true);
        check("los avisos se envían de noche", true);
        check("старые клиенты не могут подключиться", true);
    }
}
