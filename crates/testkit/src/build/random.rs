//! Numbers, ids and times that look random and are the same in every run.

/// A small generator (SplitMix64): quick, seeded, and good enough for ids and sizes.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }

    /// One of several.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A number between 0 and 1, 1 not included.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A log-normal number: half of them are below the median, and a few are far above.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        // Box and Muller's transform; the first factor must not be zero.
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.fraction()).cos();
        median * (sigma * normal).exp()
    }

    /// A random UUID (version 4).
    pub fn uuid(&mut self) -> String {
        let high = self.bits() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000;
        let low = self.bits() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000;
        format_uuid(high, low)
    }

    /// A UUID of a time in milliseconds (version 7), as Codex makes them.
    pub fn uuid_at(&mut self, milliseconds: u64) -> String {
        let high = (milliseconds << 16) | 0x7000 | (self.bits() & 0x0FFF);
        let low = self.bits() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000;
        format_uuid(high, low)
    }

    /// An id of letters and digits after a prefix, as the APIs make them.
    pub fn id(&mut self, prefix: &str, length: usize) -> String {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let letters = (0..length).map(|_| char::from(*self.choose(LETTERS)));
        prefix.chars().chain(letters).collect()
    }

    /// A hash in hexadecimal digits.
    pub fn hash(&mut self) -> String {
        (0..4).map(|_| format!("{:016x}", self.bits())).collect()
    }
}

fn format_uuid(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// A clock that goes on a little with each record.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    milliseconds: u64,
}

impl Clock {
    pub(crate) fn at(milliseconds: u64) -> Self {
        Self { milliseconds }
    }

    pub(crate) fn milliseconds(&self) -> u64 {
        self.milliseconds
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.milliseconds / 1000
    }

    /// Goes on and returns the new time as RFC 3339 with milliseconds.
    pub(crate) fn tick(&mut self, milliseconds: u64) -> String {
        self.milliseconds += milliseconds;
        self.now()
    }

    pub(crate) fn now(&self) -> String {
        let (year, month, day) = self.date();
        let (seconds, thousandths) = (self.milliseconds / 1000 % 86_400, self.milliseconds % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{thousandths:03}Z")
    }

    /// The date of the proleptic Gregorian calendar, by Howard Hinnant's `civil_from_days`.
    pub(crate) fn date(&self) -> (u64, u64, u64) {
        let days = self.milliseconds / 86_400_000 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        (year_of_era + era * 400 + u64::from(month <= 2), month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (milliseconds, time) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_776_098_452, "2026-11-15T20:54:58.452Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Clock::at(milliseconds).now(), time);
        }
    }

    #[test]
    fn ids_are_the_same_for_the_same_seed_and_well_formed() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        let uuid = one.uuid();
        assert_eq!(uuid, two.uuid());
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
        let timed = one.uuid_at(1_794_776_098_452);
        assert_eq!((&timed[..13], &timed[14..15]), ("01a1e0fd-e694", "7"));
        assert_eq!(one.id("msg_", 10).len(), 14);
    }

    #[test]
    fn half_of_the_log_normal_numbers_are_below_the_median() {
        let mut random = Random::new(1);
        let below = (0..10_000).filter(|_| random.log_normal(60.0, 1.8) < 60.0).count();
        assert!((4_800..5_200).contains(&below), "{below}");
    }
}
