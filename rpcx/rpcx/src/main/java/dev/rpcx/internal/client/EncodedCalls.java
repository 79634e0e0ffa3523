package dev.rpcx.internal.client;

import dev.rpcx.RPCXClient;
import dev.rpcx.internal.schema.MethodSchema;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/**
 * Calls the methods of any service by their published names, with messages that are encoded already. Tools that have
 * none of a service's classes use this interface, which {@code Client.create} implements like that of a service, but
 * without its annotation's name. What the server expects is not compared with the messages, unless {@link #comparing}
 * says what they are: a server refuses a request that it cannot read. Interceptors see the arguments as they are here.
 * On the classic wire there are no such calls.
 *
 * <p>The caller chooses the method of this interface by whether the called method takes and returns a stream.
 */
@RPCXClient(remoteServerName = "any")
public interface EncodedCalls {
    /**
     * Returns calls of methods with these members, for a caller who does not have them from the server. They are
     * compared with those of the server, and a method is not called if one side would misread the other.
     */
    EncodedCalls comparing(MethodSchema schema);

    /** Calls a method without a stream. The time of the call is the client's call timeout. */
    CompletableFuture<byte[]> call(String service, String method, byte[] request);

    /** Calls a method that takes a stream and returns one result. */
    CompletableFuture<byte[]> send(String service, String method, Flow.Publisher<byte[]> requests);

    /** Returns the stream of a method that returns one. Each subscriber makes a call of its own. */
    Flow.Publisher<byte[]> receive(String service, String method, byte[] request);

    /** Returns the stream of a method that takes a stream and returns one. Each subscriber makes a call of its own. */
    Flow.Publisher<byte[]> exchange(String service, String method, Flow.Publisher<byte[]> requests);
}
