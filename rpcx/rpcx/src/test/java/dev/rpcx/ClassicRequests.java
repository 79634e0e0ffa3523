package dev.rpcx;

import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import java.util.List;
import java.util.stream.IntStream;

/** Makes requests of the classic wire to methods whose parameters are numbered by their positions. */
public final class ClassicRequests {
    private ClassicRequests() {}

    public static ByteBuf of(long id, String service, String method, List<String> types, List<byte[]> values) {
        List<Integer> places = IntStream.rangeClosed(1, values.size()).boxed().toList();
        return ClassicWire.request(id, service, method, types, places, values);
    }
}
