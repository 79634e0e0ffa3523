package dev.rpcx.bench;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;

/**
 * Runs a peer's server as a process: {@code ServerSide PEER PORT}. It answers each line of its standard input, such as
 * {@code usage}, with what it has used so far, and ends when its standard input ends.
 */
final class ServerSide {
    private ServerSide() {}

    /**
     * Processor time in nanoseconds that this process has used so far, and heap bytes that its threads have allocated.
     */
    record Usage(long cpuNs, long allocatedBytes) {
        static Usage now() {
            return new Usage(
                    ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime(),
                    ((ThreadMXBean) ManagementFactory.getThreadMXBean()).getTotalThreadAllocatedBytes());
        }
    }

    public static void main(String[] args) throws Exception {
        AutoCloseable server = Peers.named(args[0]).serve(Integer.parseInt(args[1]));
        System.out.println("serving");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            Usage usage = Usage.now();
            System.out.println(usage.cpuNs() + " " + usage.allocatedBytes());
        }
        server.close();
        System.exit(0);
    }
}
