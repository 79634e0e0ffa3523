package dev.parley.encoding.protobuf;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.parley.spi.Bulk;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A message with a large content as a stream of messages of its own type: each has a piece of the content, and the
 * first one also has the other fields. It serves technologies whose documentation advises against large messages.
 * Thread-safe.
 *
 * @param content the field of bytes
 */
public record Chunks<M extends Message>(FieldDescriptor content) {
    /** Source: github.com/grpc/grpc.github.io, issue 371: 16 to 64 KiB. */
    public static final int CHUNK_BYTES = 64 * 1024;

    /** Empty for a record that is no {@link Bulk}: it travels as one message. */
    public static <R extends Record, M extends Message> Optional<Chunks<M>> of(ProtobufCodec<R, M> codec) {
        return Bulk.of(codec.record())
                .map(bulk -> new Chunks<>(codec.prototype().getDescriptorForType().getFields().stream()
                        .filter(field -> field.getType() == FieldDescriptor.Type.BYTES)
                        .findFirst()
                        .orElseThrow()));
    }

    /** At least one piece, also of an empty content. */
    @SuppressWarnings("unchecked") // a message's builder builds that message
    public List<M> split(M whole) {
        ByteString bytes = (ByteString) whole.getField(content);
        List<M> pieces = new ArrayList<>();
        for (int from = 0; from == 0 || from < bytes.size(); from += CHUNK_BYTES) {
            ByteString piece = bytes.substring(from, Math.min(bytes.size(), from + CHUNK_BYTES));
            Message.Builder builder = from == 0 ? whole.toBuilder() : whole.newBuilderForType();
            pieces.add((M) builder.setField(content, piece).build());
        }
        return pieces;
    }

    /** Puts the pieces of one stream together again. One thread. */
    public static final class Joining<M extends Message> {
        private final Chunks<M> chunks;
        private final long bytesMost;
        private final List<ByteString> pieces = new ArrayList<>();
        private long bytes;

        @Nullable
        private M first;

        /** @param bytesMost the most bytes of a whole content, since a stream by itself has no end */
        public Joining(Chunks<M> chunks, long bytesMost) {
            this.chunks = chunks;
            this.bytesMost = bytesMost;
        }

        /** @throws CallException {@link Code#TOO_LARGE} when all pieces together are above the limit */
        public void add(M piece) {
            if (first == null) {
                first = piece;
            }
            ByteString content = (ByteString) piece.getField(chunks.content());
            bytes += content.size();
            if (bytes > bytesMost) {
                throw new CallException(
                        Code.TOO_LARGE,
                        "a stream of over " + bytesMost + " bytes (expected: at most " + bytesMost + ")");
            }
            pieces.add(content);
        }

        /** @throws CallException {@link Code#PROTOCOL} if the stream was empty */
        @SuppressWarnings("unchecked") // a message's builder builds that message
        public M whole() {
            M begun = first;
            if (begun == null) {
                throw new CallException(Code.PROTOCOL, "a stream without a message (expected: at least one)");
            }
            return (M) begun.toBuilder()
                    .setField(chunks.content(), ByteString.copyFrom(pieces))
                    .build();
        }
    }
}
