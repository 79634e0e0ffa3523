package dev.rpcx.internal.io;

import io.netty.channel.unix.Socket;
import java.lang.reflect.Field;

/** Gives a {@link WriteTurn} a socket, as if the turn had found one in its channel. */
public final class FoundSocket {
    private FoundSocket() {}

    public static void give(WriteTurn turn, Socket socket) {
        try {
            Field field = WriteTurn.class.getDeclaredField("socket");
            field.setAccessible(true);
            field.set(turn, (CloseWatch.DirectSocket) socket::send);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }
}
