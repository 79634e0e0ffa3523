package dev.parley.transport.rpcx;

import dev.parley.spi.CallException;
import dev.rpcx.RPCXException;

/** The two vocabularies of errors, each as the other says it. */
final class Errors {
    private Errors() {}

    static CallException toCall(RPCXException e) {
        CallException.Code code = switch (e.code()) {
            case CANCELLED, UNAVAILABLE, OVERLOADED -> CallException.Code.UNAVAILABLE;
            case DEADLINE_EXCEEDED -> CallException.Code.DEADLINE_EXCEEDED;
            case NOT_FOUND -> CallException.Code.NOT_FOUND;
            case INVALID -> CallException.Code.INVALID;
            case HANDLER_FAILED -> CallException.Code.REMOTE_ERROR;
            case TOO_LARGE -> CallException.Code.TOO_LARGE;
            case UNAUTHENTICATED -> CallException.Code.UNAUTHENTICATED;
            case PROTOCOL -> CallException.Code.PROTOCOL;
        };
        return new CallException(code, String.valueOf(e.getMessage()), e);
    }

    static RPCXException toRpcx(CallException e) {
        RPCXException.Code code = switch (e.code()) {
            case UNAVAILABLE -> RPCXException.Code.UNAVAILABLE;
            case DEADLINE_EXCEEDED -> RPCXException.Code.DEADLINE_EXCEEDED;
            case NOT_FOUND -> RPCXException.Code.NOT_FOUND;
            case INVALID -> RPCXException.Code.INVALID;
            case REMOTE_ERROR -> RPCXException.Code.HANDLER_FAILED;
            case TOO_LARGE -> RPCXException.Code.TOO_LARGE;
            case UNAUTHENTICATED -> RPCXException.Code.UNAUTHENTICATED;
            case PROTOCOL -> RPCXException.Code.PROTOCOL;
        };
        return new RPCXException(code, String.valueOf(e.getMessage()));
    }
}
