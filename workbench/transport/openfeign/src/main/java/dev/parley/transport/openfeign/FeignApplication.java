package dev.parley.transport.openfeign;

import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;

/** What clients are built from: Spring Cloud's own configuration of Feign, and nothing of ours. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
class FeignApplication {}
