package dev.parley.transport.grpcspring;

import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.grpc.client.GrpcChannelBuilderCustomizer;
import org.springframework.grpc.server.ServerBuilderCustomizer;

/** What grpc.io's performance page names for Java, given to Boot's builders as its reference says. */
@Configuration(proxyBeanMethods = false)
class Tuned {
    /** One stream's window: a message of 1 MB leaves without waiting for window updates. The default is 1 MiB. */
    static final int WINDOW_BYTES = 4 * 1024 * 1024;

    /** Closed with the application. */
    @Bean(destroyMethod = "shutdown")
    ExecutorService calls() {
        return Executors.newVirtualThreadPerTaskExecutor();
    }

    @Bean
    ServerBuilderCustomizer<NettyServerBuilder> server(ExecutorService calls) {
        return builder -> builder.executor(calls).flowControlWindow(WINDOW_BYTES);
    }

    @Bean
    GrpcChannelBuilderCustomizer<NettyChannelBuilder> channel() {
        return (name, builder) -> builder.flowControlWindow(WINDOW_BYTES);
    }
}
