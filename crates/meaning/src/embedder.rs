//! Runs the model.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use rten::{Model, ModelOptions, RunOptions, ThreadPool, op_registry};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use crate::vector::{DIMENSIONS, Vector};
use crate::vocabulary::{BEGIN, END, UNKNOWN};
use crate::words::Words;

/// Tells the weights and the vocabulary from others: xxh3 of the two files, one after the other.
pub const MODEL: u64 = 0x90d4_749b_4709_a36b;

/// The model was taught with no more tokens than that; what follows them is not read.
const MOST_TOKENS: usize = 256;

/// From that many texts on, it pays to lay out the weights for speed first.
const MANY: usize = 4;

/// The weights, as the model file has them. Aligned, so that they are used where they lie: pages that are not used are never
/// read from the disk.
static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../model/all-MiniLM-L6-v2.int8.rten"));

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

/// Turns texts into vectors. Making one costs nothing: the model is loaded by the first text.
///
/// Texts are run one at a time and not in batches, because activations are scaled per run: in a batch, a text's vector would
/// depend on its neighbours, and batches are no faster. So a text always gets the same vector on the same machine. On
/// another kind of processor it may differ a little, since some add bytes up with saturation.
#[derive(Default)]
pub struct Embedder {
    /// The weights as stored in the binary: quick to load, for a query.
    plain: OnceLock<Model>,
    /// The weights laid out for speed.
    packed: OnceLock<Model>,
}

impl Embedder {
    /// An embedder that has loaded nothing yet.
    pub fn new() -> Embedder {
        Embedder::default()
    }

    /// The vector of one text, from its first 254 tokens. A text without words has [`Vector::NOTHING`], and so has one
    /// with mostly unknown tokens: most Chinese, rows of emoji, encoded data. The model can't distinguish such texts.
    pub fn embed(&self, text: &str) -> Vector {
        let tokens = tokens(text);
        if tokens.is_empty() {
            return Vector::NOTHING;
        }
        let model = self.packed.get().unwrap_or_else(|| self.plain.get_or_init(|| load(Layout::Plain)));
        run(model, &one_thread(), &tokens)
    }

    /// The meaning of many texts, in their order, on up to `threads` threads.
    pub fn embed_all<T: AsRef<str> + Sync>(&self, texts: &[T], threads: usize) -> Vec<Vector> {
        if texts.len() < MANY && self.packed.get().is_none() {
            return texts.iter().map(|text| self.embed(text.as_ref())).collect();
        }
        let model = self.packed.get_or_init(|| load(Layout::Packed));
        let vectors: Vec<OnceLock<Vector>> = texts.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let pool = one_thread();
            while let Some((text, vector)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                texts.get(index).zip(vectors.get(index))
            } {
                let tokens = tokens(text.as_ref());
                vector.get_or_init(|| if tokens.is_empty() { Vector::NOTHING } else { run(model, &pool, &tokens) });
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(texts.len()) {
                scope.spawn(work);
            }
            work();
        });
        vectors.into_iter().map(|vector| vector.into_inner().unwrap_or(Vector::NOTHING)).collect()
    }
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let loaded = |model: &OnceLock<Model>| model.get().is_some();
        formatter
            .debug_struct("Embedder")
            .field("plain", &loaded(&self.plain))
            .field("packed", &loaded(&self.packed))
            .finish()
    }
}

/// The tokens of a text with the special tokens around it; empty if the model does not support it.
fn tokens(text: &str) -> Vec<u32> {
    let ids = all_tokens(text);
    let unknown = ids.iter().filter(|id| **id == UNKNOWN).count();
    if 2 * unknown > ids.len().saturating_sub(2) { Vec::new() } else { ids }
}

/// The same for every text that has a word at all.
fn all_tokens(text: &str) -> Vec<u32> {
    let mut ids = vec![BEGIN];
    let mut words = Words::new(text);
    while ids.len() < MOST_TOKENS && words.next(&mut ids).is_some() {}
    if ids.len() == 1 {
        return Vec::new();
    }
    ids.truncate(MOST_TOKENS - 1);
    ids.push(END);
    ids
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Plain,
    Packed,
}

fn load(layout: Layout) -> Model {
    // Only what this model needs: with all operators, the binary would be larger by megabytes.
    let operators = op_registry!(
        Add,
        And,
        Cast,
        Concat,
        ConstantOfShape,
        DequantizeLinear,
        Div,
        DynamicQuantizeLinear,
        Equal,
        Erf,
        Expand,
        Flatten,
        Gather,
        GatherElements,
        GreaterOrEqual,
        LayerNormalization,
        MatMul,
        MatMulInteger,
        Mul,
        Range,
        Reshape,
        Shape,
        Slice,
        Softmax,
        Transpose,
        Unsqueeze,
        Where
    );
    ModelOptions::with_ops(operators)
        .prepack_weights(layout == Layout::Packed)
        .load_static_slice(&WEIGHTS.0)
        .expect("the embedded model loads; it is part of the binary, and the tests load it")
}

/// A core for each text, instead of all cores for one: nothing has to wait for each other.
fn one_thread() -> Arc<ThreadPool> {
    Arc::new(ThreadPool::with_num_threads(1))
}

fn run(model: &Model, pool: &Arc<ThreadPool>, tokens: &[u32]) -> Vector {
    let shape = [1, tokens.len()];
    let ids = NdTensor::from_data(shape, tokens.iter().map(|id| *id as i32).collect::<Vec<i32>>());
    let mask = NdTensor::full(shape, 1i32);
    let inputs = model.input_ids().iter().copied().zip([ids.view().into(), mask.view().into()]).collect();
    let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
    let outputs = model.run(inputs, model.output_ids(), Some(options));
    let hidden: Tensor<f32> = outputs
        .ok()
        .and_then(|outputs| outputs.into_iter().next()?.try_into().ok())
        .expect("the embedded model takes up to 512 ids below 30,522");
    mean(hidden.data().expect("a fresh tensor is contiguous"))
}

/// The mean over all tokens. Its length does not matter, so it is not divided by their number.
fn mean(hidden: &[f32]) -> Vector {
    let mut sum = [0.0; DIMENSIONS];
    for token in hidden.as_chunks::<DIMENSIONS>().0 {
        sum.iter_mut().zip(token).for_each(|(sum, value)| *sum += value);
    }
    Vector::new(&sum)
}

#[cfg(test)]
mod tests;
