package dev.parley.transport.rsocket;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import io.rsocket.exceptions.ApplicationErrorException;
import io.rsocket.exceptions.CustomRSocketException;

/** Errors of calls as RSocket's error codes and back. */
final class Errors {
    /** The first code that applications may use. Source: RSocket protocol, Error Codes. */
    private static final int FIRST = 0x00000301;

    private Errors() {}

    static CustomRSocketException written(Throwable thrown) {
        CallException fault = CallException.of(thrown);
        return new CustomRSocketException(FIRST + fault.code().ordinal(), String.valueOf(fault.getMessage()));
    }

    static CallException read(Throwable thrown) {
        return switch (thrown) {
            case CallException call -> call;
            case CustomRSocketException told
            when known(told) ->
                new CallException(Code.values()[told.errorCode() - FIRST], String.valueOf(told.getMessage()), told);
            case ApplicationErrorException told ->
                new CallException(Code.REMOTE_ERROR, String.valueOf(told.getMessage()), told);
            case IllegalArgumentException tooLong ->
                new CallException(Code.TOO_LARGE, String.valueOf(tooLong.getMessage()), tooLong);
            default -> new CallException(Code.UNAVAILABLE, String.valueOf(thrown), thrown);
        };
    }

    private static boolean known(CustomRSocketException told) {
        int index = told.errorCode() - FIRST;
        return index >= 0 && index < Code.values().length;
    }
}
