//! Configures how the C library allocates memory, where possible.

/// Lets every thread take memory in large steps. Those that walk folders take a little for each file, and asking the system
/// for every few of them makes all threads wait; what is not used costs nothing.
pub(crate) fn take_in_large_steps() {
    set(Setting::Step);
}

/// Lets all threads take memory from two places, instead of each from one of its own: where each call has threads of its
/// own, what they have given back would stay theirs.
pub(crate) fn share() {
    set(Setting::Places);
}

#[derive(Clone, Copy)]
enum Setting {
    Step,
    Places,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way to say so; nothing else runs yet")]
fn set(setting: Setting) {
    let (name, value) = match setting {
        Setting::Step => (libc::M_TOP_PAD, 4 << 20),
        Setting::Places => (libc::M_ARENA_MAX, 2),
    };
    // SAFETY: it only sets a number, and no other thread has begun.
    unsafe {
        libc::mallopt(name, value);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set(_setting: Setting) {}
