package dev.rpcx.bench;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;

/** A peer's server as a process: {@code ServerSide PEER PORT}. Answers {@code usage} with what it has used, ends with its standard input. */
final class ServerSide {
    private ServerSide() {}

    /** Processor time and heap bytes that this process has used so far. */
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
