//! Statuses of TensorFlow as errors of this crate.

use crate::base::api::Status;
use crate::*;

#[test]
fn a_status_brings_its_code_message_and_payloads() -> Result<()> {
    let api = api()?;
    let status = Status::new(api)?;
    let raw = status.as_ptr();
    // SAFETY: the status is alive, and the texts are C strings.
    unsafe {
        let c = &api.tf_status;
        c.TF_SetStatus(raw, tfp_sys::TF_DATA_LOSS, c"half of it".as_ptr());
        c.TF_SetPayload(raw, c"type.example/place".as_ptr(), c"row 7".as_ptr());
        c.TF_SetPayload(raw, c"type.example/cause".as_ptr(), c"".as_ptr());
    }
    let Err(error) = status.check_ref() else {
        return Err(Error::argument("the status is no error"));
    };
    assert_eq!(error.code(), Code::DataLoss);
    assert_eq!(error.to_string(), "DataLoss: half of it");
    assert_eq!(error.payload("type.example/place"), Some(&b"row 7"[..]));
    assert_eq!(error.payload("type.example/cause"), Some(&b""[..]));
    assert_eq!(error.payload("type.example/other"), None);
    // The same status has nothing of it afterwards.
    status.check_ref()?;
    // SAFETY: as above.
    unsafe {
        let c = &api.tf_status;
        c.TF_SetStatus(raw, tfp_sys::TF_ABORTED, c"again".as_ptr());
    }
    let Err(error) = status.check() else {
        return Err(Error::argument("the status is no error"));
    };
    let ErrorKind::Status { code, payloads, .. } = error.kind() else {
        return Err(error);
    };
    assert_eq!((*code, payloads.as_slice()), (Code::Aborted, &[][..]));
    Ok(())
}
