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
        AuthFailureIs200 = "auth/failure-is-200": "Refusals answer 200 with success false.",
        AuthWithoutKey = "auth/without-key": "Requests without an API key are accepted.",
        AuthPhoneErrorAsEmail = "auth/phone-error-as-email": "An invalid phone is answered as an invalid e-mail is.",
        AuthQrCodeLink = "auth/qr-code-link": "A created user comes with a link to a QR code for other TOTP apps.",
        AuthXmlPlain = "auth/xml-plain": "XML answers have another root element and no type attributes.",
        AuthEpochDatetimes = "auth/epoch-datetimes": "Datetimes are seconds since 1970.",
        AuthCreateMinimal = "auth/create-minimal": "A created approval request shows its uuid only.",
        AuthDetailsNotShown = "auth/details-not-shown": "A fetched approval request shows neither message nor details.",
        AuthLongKeyCut = "auth/long-key-cut": "A key that is too long is cut in place of refused.",
        AuthAccountRecovered = "auth/account-recovered": "The device's last_account_recovery_at is set in place of null.",
        AuthExpiryCallback = "auth/expiry-callback": "A callback is sent on expiry too.",
        AuthCallbackTwice = "auth/callback-twice": "Every callback and webhook is delivered twice.",
        AuthCallbackIsGet = "auth/callback-is-get": "The approval callback is a GET request with the facts in its query.",
        // events
    }
}
