//! Variants: deliberate legal freedoms of the reference, which no rule may accuse.

super::faults::switches! {
    /// A legal freedom; conforming implementations differ in these.
    Variant {
        CreatedIs200 = "created-is-200": "Creation answers 200 in place of 201.",
        OtherErrorBody = "other-error-body": "Refusals carry plain text in place of a JSON object.",
        NumericOffset = "numeric-offset": "Timestamps spell GMT as +00:00.",
        FractionalSeconds = "fractional-seconds": "Timestamps carry milliseconds.",
        UppercaseHex = "uppercase-hex": "SIDs use upper-case hexadecimal digits.",
        // flow
        // chat
        // media
        // auth
        // events
    }
}
