//! What is read of a login is written as bytes that mean the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::mysql::{
    AuthMore, AuthSwitch, Capabilities, ChangeUser, ErrPacket, Greeting, Header, Hello,
};

fuzz_target!(|input: (u64, &[u8])| {
    let (capabilities, bytes) = (Capabilities(input.0), input.1);
    let mut out = Vec::new();
    if let Ok(greeting) = Greeting::read(bytes) {
        greeting.append(&mut out);
        assert_eq!(Greeting::read(&out[Header::LEN..]), Ok(greeting));
    }
    out.clear();
    match Hello::read(bytes) {
        Ok(Hello::Login(login)) => {
            assert!(login.attributes.count() <= bytes.len());
            login.append(1, &mut out);
            assert_eq!(Hello::read(&out[Header::LEN..]), Ok(Hello::Login(login)));
        }
        Ok(Hello::Tls(tls)) => {
            tls.append(&mut out);
            assert_eq!(Hello::read(&out[Header::LEN..]), Ok(Hello::Tls(tls)));
        }
        Err(_) => {}
    }
    out.clear();
    if let Ok(change) = ChangeUser::read(bytes, capabilities) {
        change.append(capabilities, &mut out);
        assert_eq!(ChangeUser::read(&out[Header::LEN..], capabilities), Ok(change));
    }
    out.clear();
    if let Ok(switch) = AuthSwitch::read(bytes) {
        switch.append(2, &mut out);
        assert_eq!(AuthSwitch::read(&out[Header::LEN..]), Ok(switch));
    }
    let _ = (AuthMore::read(bytes), ErrPacket::read(bytes));
});
