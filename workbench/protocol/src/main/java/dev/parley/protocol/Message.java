package dev.parley.protocol;

/** One line between the lab and a process that it started. Every message is a record. */
public sealed interface Message permits Hello, Command, Event, ServiceCommand, ServiceEvent {}
