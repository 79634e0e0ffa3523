package dev.parley.transport.grpcspring;

import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.grpc.server.exception.GrpcExceptionHandler;

/** {@code @SpringBootApplication} without the search for components: the contract says which service there is. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
class GrpcApplication {
    @Bean
    GrpcExceptionHandler errors() {
        return thrown -> Errors.status(thrown).asException();
    }
}
