package dev.rpcx.internal.server;

import dev.rpcx.internal.wire.Settings;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandler;

/**
 * A wire that RPCX has not defined, such as gRPC, as one server speaks it. The wire makes a translator for each of its
 * connections. The translator stands in the pipeline of the channel, in front of the {@link ServerConnection}. It turns
 * the messages of the wire into frames of the native wire, and the frames that the {@code ServerConnection} sends into
 * messages of the wire. So to the server, such a connection is a native one: its limits, its charges, its interceptors
 * and its handlers are the same.
 *
 * <p>{@code docs/decisions/0030-grpc-is-translated-into-the-native-wire.md} says why.
 */
public interface TranslatedWire {
    /** Returns whether a connection with this first byte belongs to this wire. The byte is not that of another wire. */
    boolean isBegunBy(int firstByte);

    /** Returns the name by which the clients of this wire ask for it in a TLS handshake (ALPN), such as {@code h2}. */
    String applicationProtocol();

    /**
     * Makes the translator of a connection. Called on the event loop.
     *
     * @param connection the server's side of the connection, which stands behind the translator. It waits for the
     *     native preface, which the translator makes
     * @param server settings of the server, which the server also sends to native clients
     * @param begin the first bytes of the connection, at least one; not to be read here, since the translator gets them
     */
    ChannelHandler translator(ServerConnection connection, Settings server, ByteBuf begin);
}
