#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    lately_fuzz::records::run(bytes);
});
