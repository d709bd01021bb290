//! Masked phases and rounded halves of BFV, as they are sent and as they are kept: whatever decodes has exactly one wire form.
#![no_main]

use std::sync::LazyLock;

use lanner_bfv::function_privacy::{PhaseModulus, PhaseSealing, PreparedPhase};
use lanner_bfv::halves::{C0, InputModulus, PreparedInput};
use lanner_bfv::{NoiseBound, Parameters};
use lanner_wire::{Reader, Writer};
use libfuzzer_sys::fuzz_target;

struct Context {
    parameters: Parameters,
    phase: PhaseModulus,
    input: InputModulus,
}

const COUNT: usize = 64;

static CONTEXT: LazyLock<Context> = LazyLock::new(|| {
    let parameters = Parameters::new(4096, &[1_125_899_903_827_969], Some(1_125_899_902_124_033)).unwrap();
    let phase = PhaseModulus::faithful(&parameters, 12, NoiseBound::fresh()).unwrap();
    let input = InputModulus::new(&parameters, 12, 34, [COUNT, 0]).unwrap();
    Context { parameters, phase, input }
});

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let Context { parameters, phase, input } = &*CONTEXT;
    let (mut reader, mut writer) = (Reader::new(bytes), Writer::new());
    match kind % 4 {
        0 => {
            let Ok(sealing) = PhaseSealing::decode(phase, NoiseBound::fresh(), COUNT, &mut reader) else { return };
            sealing.encode(&mut writer);
        }
        1 => {
            let Ok(prepared) = PreparedPhase::decode(phase, COUNT, &mut reader) else { return };
            prepared.encode(&mut writer);
            let _ = prepared.open(bytes);
        }
        2 => {
            let Ok(prepared) = PreparedInput::decode(input, &mut reader) else { return };
            prepared.encode(&mut writer);
        }
        _ => return drop(C0::from_rounded(input, bytes, &vec![0; parameters.degree()])),
    }
    assert!(bytes.starts_with(&writer.into_bytes()));
});
