//! The language of the product: its messages in files that a reader can review, and a check of the prose.

mod notices;
mod prose;
mod source;
