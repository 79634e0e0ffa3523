package dev.rpcx;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs a server as a process, with the arguments {@code PORT FILE}. The server writes the number of each executed call
 * to the file, in which it stays after a kill -9.
 */
public final class Journal {
    private Journal() {}

    @RPCXServer("journal")
    static final class Written {
        private final FileChannel file;

        Written(FileChannel file) {
            this.file = file;
        }

        @Method
        long write(long number) throws IOException {
            file.write(ByteBuffer.allocate(Long.BYTES).putLong(number).flip());
            return number;
        }
    }

    /** A call may take this long. */
    static final int CALL_MILLIS = 10_000;

    @RPCXClient(remoteServerName = "journal")
    interface Writing {
        @Method(timeoutMillis = CALL_MILLIS)
        long write(long number);

        @Method(value = "write", idempotent = true, timeoutMillis = CALL_MILLIS)
        long writeAgain(long number);
    }

    /** Returns how often each number was written. */
    static Map<Long, Integer> read(Path path) throws IOException {
        ByteBuffer all = ByteBuffer.wrap(java.nio.file.Files.readAllBytes(path));
        Map<Long, Integer> times = new HashMap<>();
        while (all.remaining() >= Long.BYTES) {
            times.merge(all.getLong(), 1, Integer::sum);
        }
        return times;
    }

    public static void main(String[] args) throws Exception {
        FileChannel file = FileChannel.open(Path.of(args[1]), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        Server server = Server.builder(RegistryServer.registry(new Written(file)))
                .host("127.0.0.1")
                .port(Integer.parseInt(args[0]))
                .build()
                .start();
        System.out.println("serving " + server.port());
        while (System.in.read() >= 0) {}
        server.stop(Duration.ofMillis(500));
    }
}
