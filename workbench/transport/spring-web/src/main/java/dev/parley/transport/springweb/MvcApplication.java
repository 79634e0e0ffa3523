package dev.parley.transport.springweb;

import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;

/** {@code @SpringBootApplication} without the search for components: the contract says which controller there is. */
@SpringBootConfiguration(proxyBeanMethods = false)
@EnableAutoConfiguration
class MvcApplication {}
