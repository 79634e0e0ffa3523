package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.transport.thrift.generated.fault.Fault;
import java.net.SocketTimeoutException;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.transport.TTransportException;

/** How calls end badly, as the interface's exception and back. */
final class Errors {
    private Errors() {}

    static Fault written(Throwable thrown) {
        CallException call = CallException.of(thrown);
        return new Fault(call.code().name(), String.valueOf(call.getMessage()));
    }

    static CallException read(Throwable thrown) {
        return switch (thrown) {
            case CallException call -> call;
            case Fault fault -> new CallException(code(fault), fault.getText(), fault);
            case TApplicationException told ->
                new CallException(
                        told.getType() == TApplicationException.UNKNOWN_METHOD ? Code.NOT_FOUND : Code.PROTOCOL,
                        String.valueOf(told.getMessage()),
                        told);
            case TProtocolException unread ->
                new CallException(Code.PROTOCOL, String.valueOf(unread.getMessage()), unread);
            case TTransportException lost -> new CallException(code(lost), String.valueOf(lost.getMessage()), lost);
            default -> new CallException(Code.PROTOCOL, String.valueOf(thrown), thrown);
        };
    }

    private static Code code(Fault fault) {
        try {
            return Code.valueOf(fault.getCode());
        } catch (IllegalArgumentException unknown) {
            return Code.REMOTE_ERROR;
        }
    }

    private static Code code(TTransportException lost) {
        return switch (lost.getType()) {
            case TTransportException.TIMED_OUT -> Code.DEADLINE_EXCEEDED;
            case TTransportException.CORRUPTED_DATA -> Code.PROTOCOL;
            default -> lost.getCause() instanceof SocketTimeoutException ? Code.DEADLINE_EXCEEDED : Code.UNAVAILABLE;
        };
    }
}
